package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// connectTime is how long a command waits for Redis before it gives up.
const connectTime = 3 * time.Second

const defaultRedis = "redis://127.0.0.1:6379/0"

// client is a namespace on a Redis, as the commands other than serve see it.
type client struct {
	*onbeat.Dispatcher
	rdb       redis.UniversalClient
	url       string // without its password
	namespace string
	caps      queue.Caps

	durability queue.Durability
	lease      time.Duration // of the config; 0: the default
	sentinels  *sentinels    // nil: the URL names none
	cautions   []caution
}

// target says where to work: flags first, then the environment, then the config file, then the onbeat dev of this folder.
type target struct {
	url, namespace string
	limits         task.Limits
	caps           queue.Caps
	durability     queue.Durability
	lease          time.Duration
	secretFile     string // a config file that has a password in it, or ""
}

func (a *app) target() (target, error) {
	if a.Config == "" {
		cfg, err := a.found()
		if err != nil {
			return target{}, err
		}
		return a.targetOf(cfg)
	}
	cfg, err := a.loadConfig(a.Config)
	if err != nil {
		return target{}, err
	}
	return a.targetOf(cfg)
}

func (a *app) targetOf(cfg *config) (t target, err error) {
	t = target{
		limits: task.Limits{Payload: int(cfg.PayloadLimit)},
		caps:   cfg.Keep.caps(), durability: cfg.Durability.queue(), lease: time.Duration(cfg.Lease),
	}
	t.url, err = redisURL(cmp.Or(a.Redis, a.env("ONBEAT_REDIS_URL"), string(cfg.Redis.URL), defaultRedis))
	if err != nil {
		return target{}, err
	}
	t.url = cfg.withTLS(t.url)
	if cfg.secret {
		t.secretFile = cfg.file.name
	}
	t.namespace, err = a.namespaceOf(cfg)
	return t, err
}

func (a *app) namespaceOf(cfg *config) (string, error) {
	name := cmp.Or(a.Namespace, a.env("ONBEAT_NAMESPACE"), string(cfg.Namespace))
	if name == "" {
		return "", refuse("namespace", "", "missing", "pass --namespace, set ONBEAT_NAMESPACE, or name a config file with -c")
	}
	return name, queue.Partition{Namespace: name}.Validate()
}

// connect opens the namespace, and fails at once if Redis does not answer. Close it.
func (a *app) connect(ctx context.Context) (*client, error) {
	t, err := a.target()
	if err != nil {
		return nil, err
	}
	return a.connectTo(ctx, t)
}

func (a *app) connectTo(ctx context.Context, t target) (*client, error) {
	want := t.durability.Replicas
	t.durability.Report = func(replicas int, enough bool) {
		if !enough {
			fmt.Fprintf(a.err, "onbeat: written, but to %d of the %d replicas that durability asks for: a failover may lose it\n", replicas, want)
		}
	}
	c, err := t.open()
	if err != nil {
		return nil, err
	}
	if err := c.ping(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open makes the client. It does not talk to Redis.
func (t target) open() (*client, error) {
	rdb, err := onbeat.Dial(t.url)
	if err != nil {
		return nil, err
	}
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: t.namespace, PayloadLimit: t.limits.Payload, Caps: t.caps, Durability: t.durability})
	if err != nil {
		_ = rdb.Close()
		return nil, err
	}
	for typ, h := range handlers.Builtin(handlers.BuiltinConfig{AllowExec: true}) { // to check payloads; nothing runs here
		if err := d.Handle(typ, h); err != nil {
			_ = rdb.Close()
			return nil, err
		}
	}
	return &client{Dispatcher: d, rdb: rdb, url: onbeat.Redacted(t.url), namespace: t.namespace, caps: t.caps, durability: t.durability,
		lease: t.lease, sentinels: sentinelsOf(t.url), cautions: t.cautions()}, nil
}

// ping asks whether Redis is there.
func (c *client) ping(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, connectTime)
	defer done()
	answer := make(chan error, 1)
	go func() { answer <- c.rdb.Ping(ctx).Err() }() // some waits of the client do not end with the context
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	err = whyHungUp(ctx, c.rdb, queue.Classify(err))
	if errors.Is(err, queue.ErrBusy) { // so it is there
		return &failure{fmt.Errorf("%s: %w", c.url, err), hintOf(err)}
	}
	if hint, ok := tlsHint(err); ok {
		return &failure{fmt.Errorf("%s: %w", c.url, err), hint}
	}
	if c.mayLackTLS(err) {
		return &failure{fmt.Errorf("%s: %w", c.url, err), "does this port speak TLS? use rediss:// if it does, redis:// if not"}
	}
	if queue.Retryable(err) {
		return &failure{fmt.Errorf("%s: %w", c.url, err), "is it running? name another with --redis or ONBEAT_REDIS_URL; onbeat dev brings its own"}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.url, err)
	}
	return nil
}

// mayLackTLS reports whether err is what it looks like when one side speaks TLS and the other does not: the server hangs up,
// or both wait for the other to begin.
func (c *client) mayLackTLS(err error) bool {
	if errors.Is(err, io.EOF) {
		return true
	}
	var network net.Error
	late := errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
	return late && strings.HasPrefix(c.url, "rediss")
}

// Close closes the connection.
func (c *client) Close() { _ = c.rdb.Close() }
