package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// connectTime is how long a command waits for Redis to answer.
const connectTime = 3 * time.Second

const defaultRedis = "redis://127.0.0.1:6379/0"

// client is an open namespace, for the commands other than serve.
type client struct {
	*admin.Admin
	namespace string
	close     func()

	// Behind an API these are not known.
	rdb        redis.UniversalClient
	partitions int
}

// target says which Redis and namespace to use. A flag decides; without it the environment and the config file, which must not
// differ; without any of them, the onbeat dev of this folder.
type target struct {
	url        string
	api        string // the URL of the API to use in place of Redis, or ""
	cfg        onbeat.Config
	secretFile string   // a config file that has the password of Redis in it, or ""
	archive    string   // a config file that has the password of the archive in it, or ""
	outboxFile string   // a config file that has the password of the outbox in it, or ""
	keyFiles   []string // the files that hold keys of encryption
	passEnv    []string // the variables that payloads of http may refer to
}

// limits bound what tasks may hold.
func (t target) limits() task.Limits {
	if t.api != "" { // the instance behind it has its own
		return task.Limits{Payload: math.MaxInt}
	}
	return task.Limits{Payload: t.cfg.PayloadLimit}
}

func (a *app) target() (target, error) {
	file, err := a.named()
	if err != nil {
		return target{}, err
	}
	return a.targetOf(file)
}

// redisTarget is target for a command that an API cannot serve.
func (a *app) redisTarget() (target, error) {
	if a.Config == "" {
		file, err := a.found()
		if err != nil {
			return target{}, err
		}
		return a.redisOf(file)
	}
	file, err := a.loadConfig(a.Config)
	if err != nil {
		return target{}, err
	}
	return a.redisOf(file)
}

// named returns the config that is named, or that of the onbeat dev of this folder if neither a Redis nor an API is named.
func (a *app) named() (*config.File, error) {
	if a.Config != "" {
		return a.loadConfig(a.Config)
	}
	if api, err := a.apiOf(nil); api != "" || err != nil {
		return &config.File{}, err
	}
	return a.found()
}

func (a *app) targetOf(file *config.File) (t target, err error) {
	if t.api, err = a.apiOf(file); err != nil {
		return target{}, err
	}
	if t.api != "" {
		t.cfg, t.passEnv = file.Dispatcher, file.Handlers.HTTP.PassEnv
		return t, nil
	}
	return a.redisOf(file)
}

func (a *app) redisOf(file *config.File) (t target, err error) {
	t.cfg = file.Dispatcher
	t.keyFiles = file.KeyFiles
	t.passEnv = file.Handlers.HTTP.PassEnv
	if t.url, err = a.urlOf(file); err != nil {
		return target{}, err
	}
	if a.Redis == "" { // a user who names a Redis by hand knows how to reach it
		if err := file.CheckTLS(t.url); err != nil {
			return target{}, err
		}
	}
	t.url = file.WithTLS(t.url)
	if file.Redis.Secret {
		t.secretFile = file.Name
	}
	if err = a.archiveOf(file, &t); err != nil {
		return target{}, err
	}
	if a.ownRedis {
		t.cfg.Outbox = nil // its tasks are for the instances of another Redis
	} else if file.OutboxSecret {
		t.outboxFile = file.Name
	}
	t.cfg.Namespace, err = a.namespaceOf(file)
	return t, err
}

// urlOf returns the URL of Redis from the flag, or else from the environment and the config, which must agree: a variable left
// over from staging must not override a production config.
func (a *app) urlOf(file *config.File) (string, error) {
	said, env := file.Redis.URL, a.env("ONBEAT_REDIS_URL")
	if f, in := inFile(env); in {
		env = f.absolute()
	}
	if a.Redis == "" && env != "" && said != "" && env != said {
		return "", file.At(refuse("redis.url", shownURL(said), fmt.Sprintf("ONBEAT_REDIS_URL says %q", shownURL(env)),
			"unset the variable, leave redis.url out of the config, or decide with --redis"))
	}
	return redisURL(cmp.Or(a.Redis, a.env("ONBEAT_REDIS_URL"), said, defaultRedis))
}

// shownURL returns a URL without its password. The name of a file that holds the URL has no password.
func shownURL(url string) string {
	if _, in := inFile(url); in {
		return url
	}
	return secret.URL(url)
}

// errNoNamespace refuses a command that needs a namespace when no flag, variable or config names one.
var errNoNamespace = refuse("namespace", "", "missing", "pass --namespace, set ONBEAT_NAMESPACE, or name a config file with -c")

// namespaceOf returns the namespace from the flag, or else from the environment and the config, which must agree.
func (a *app) namespaceOf(file *config.File) (string, error) {
	said, env := file.Dispatcher.Namespace, a.env("ONBEAT_NAMESPACE")
	if a.Namespace == "" && env != "" && said != "" && env != said {
		return said, file.At(refuse("namespace", said, fmt.Sprintf("ONBEAT_NAMESPACE says %q", env),
			"unset the variable, leave namespace out of the config, or decide with --namespace"))
	}
	name := cmp.Or(a.Namespace, env, said)
	if name == "" {
		return "", errNoNamespace
	}
	return name, queue.Partition{Namespace: name}.Validate()
}

// connect opens the namespace, and fails at once if Redis does not answer. The caller closes the client.
func (a *app) connect(ctx context.Context) (*client, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	return a.connectTo(ctx, t)
}

func (a *app) connectTo(ctx context.Context, t target) (*client, error) {
	if t.api != "" {
		return a.connectAPI(ctx, t.api)
	}
	want := t.cfg.Durability.Replicas
	t.cfg.Durability.Report = func(replicas int, enough bool) {
		if !enough {
			fmt.Fprintf(a.err, "onbeat: written, but only %d of the %d replicas that durability asks for have it: a failover may lose it\n", replicas, want)
		}
	}
	rdb, err := t.dial()
	if err != nil {
		return nil, err
	}
	if err = t.ping(ctx, rdb); err == nil {
		err = t.split(ctx, rdb)
	}
	var d *onbeat.Dispatcher
	if err == nil {
		d, err = t.dispatcher(rdb)
	}
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	return &client{Admin: d.Admin(), namespace: t.cfg.Namespace, rdb: rdb, partitions: t.cfg.Partitions, close: func() {
		_ = d.Close()
		_ = rdb.Close()
	}}, nil
}

// dial makes a client of Redis. It does not connect yet.
func (t target) dial() (redis.UniversalClient, error) { return config.Dial(onbeat.Dialer{}, t.url) }

// dispatcher makes a dispatcher that checks the payloads of the built-in handlers. It runs no task, and a command reports by its errors.
func (t target) dispatcher(rdb redis.UniversalClient) (*onbeat.Dispatcher, error) {
	t.cfg.Log = onbeat.Quiet
	d, err := onbeat.New(rdb, t.cfg)
	if err != nil {
		return nil, err
	}
	for typ, h := range handlers.Builtin(handlers.BuiltinConfig{AllowExec: true}) {
		if err := d.Handle(typ, h); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// patience is how long Redis may take for the first answer.
func (t target) patience() time.Duration {
	if strings.Contains(t.url, "-cluster://") {
		return 4 * connectTime // the client asks one node after the other what lies where, and a node that hangs takes five seconds
	}
	return connectTime
}

// ping checks that Redis answers.
func (t target) ping(ctx context.Context, rdb redis.UniversalClient) error {
	ctx, done := context.WithTimeout(ctx, t.patience())
	defer done()
	answer := make(chan error, 1)
	go func() { answer <- store.Ping(ctx, rdb) }() // the client may keep waiting after ctx has ended
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	url := secret.URL(t.url)
	err = whyHungUp(ctx, rdb, store.Classify(err))
	if errors.Is(err, task.ErrBusy) { // so Redis runs
		return &failure{fmt.Errorf("%s: %w", url, err), admin.Hint(err)}
	}
	if hint, ok := tlsHint(err); ok {
		return &failure{fmt.Errorf("%s: %w", url, err), hint}
	}
	if mayLackTLS(url, err) {
		return &failure{fmt.Errorf("%s: %w", url, err), "does this port speak TLS? use rediss:// if it does, redis:// if not"}
	}
	if store.Retryable(err) {
		return &failure{fmt.Errorf("%s: %w", url, err), "is it running? name another with --redis or ONBEAT_REDIS_URL; onbeat dev brings its own"}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return nil
}

// mayLackTLS reports whether err may come from one side speaking TLS and the other not: the server hangs up, or each side
// waits for the other to begin.
func mayLackTLS(url string, err error) bool {
	if errors.Is(err, io.EOF) {
		return true
	}
	var network net.Error
	late := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
	return late && strings.HasPrefix(url, "rediss")
}

// Close closes the connection.
func (c *client) Close() { c.close() }
