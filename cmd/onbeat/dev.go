package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/onbeat/onbeat/embedded"
	"github.com/onbeat/onbeat/internal/private"
)

type devCmd struct {
	Dir       string `default:".onbeat" placeholder:"DIR" help:"Where the redis-server keeps its data (default ${default})."`
	Port      int    `placeholder:"N" help:"Port of the Redis on 127.0.0.1. Default: a free one."`
	InProcess bool   `help:"Use the Redis inside this process even where a redis-server is on PATH. It keeps nothing."`
	Release   string `placeholder:"R" help:"Version that this instance runs."`
	AllowExec bool   `help:"Let tasks run programs on this machine (the exec handler)."`
}

// Help is shown by onbeat dev --help.
func (c *devCmd) Help() string {
	return "Runs an instance like serve, with a Redis of its own: a redis-server on PATH as a child, whose data stays under " +
		".onbeat/ from one run to the next, else one inside this process. Without a config file it writes a small one to " +
		".onbeat/dev.yaml, for you to change.\n\n" +
		"Its Redis has a password, each time another, for other users of this machine. While it runs, your other commands find it " +
		"in the same folder, and from elsewhere by --redis file:DIR/.onbeat/redis.url. A Redis that a flag or the environment names goes before."
}

// sampleConfig is what a newcomer begins with.
const sampleConfig = `# The config of onbeat dev. Change it: SIGHUP or a restart reads it again.
namespace: dev
schedules:
  - name: heartbeat
    every: 5s             # or cron: "*/5 * * * *"
    task: echo            # or http, with payload: {url: https://example.com/hook}
    payload: {message: "a beat"}
`

// Run is an instance and its Redis, until ctx ends.
func (c *devCmd) Run(ctx context.Context, a *app) error {
	if a.Redis != "" {
		return &usageError{"dev brings its own Redis, and --redis names another", "use onbeat serve with that one"}
	}
	namespace, own, err := c.prepare(a)
	if err != nil {
		return err
	}
	redis, err := embedded.Start(ctx, embedded.Options{Dir: c.Dir, Port: c.Port, InProcess: c.InProcess})
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }() // after the instance has left
	a.Redis = redis.URL()
	file, remove, err := c.tell(redis.URL(), namespace)
	if err != nil {
		return err
	}
	defer remove()
	if err := c.greet(a, redis, file, own); err != nil {
		return err
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { // serve would wait for it to come back
		select {
		case <-redis.Done():
			stop()
		case <-ctx.Done():
		}
	}()
	serve := serveCmd{Release: c.Release, AllowExec: c.AllowExec}
	err = serve.Run(ctx, a)
	return cmp.Or(redis.Err(), err)
}

// prepare finds the config and the namespace. It reports whether the config is one of dev's own.
func (c *devCmd) prepare(a *app) (namespace string, own bool, err error) {
	if a.Config == "" {
		if a.Config, err = c.sample(a); err != nil {
			return "", false, err
		}
		own = true
	}
	cfg, err := a.loadConfig(a.Config) // before a Redis is started for it
	if err != nil {
		return "", own, err
	}
	if cfg.Dispatcher.Namespace == "" {
		a.Namespace = cmp.Or(a.Namespace, a.env("ONBEAT_NAMESPACE"), "dev")
	}
	namespace, err = a.namespaceOf(cfg)
	return namespace, own, err
}

// sample is dev's own config file, made if it is not there. One that others may have written is refused: its tasks run.
func (c *devCmd) sample(a *app) (string, error) {
	if err := c.folder(); err != nil {
		return "", refusePrivate("dir", c.Dir, err, "name a folder that can be written")
	}
	name := filepath.Join(c.Dir, "dev.yaml")
	a.private = name
	err := private.Create(name, []byte(sampleConfig))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("write the sample config: %w", err)
	}
	return name, nil
}

// folder makes the folder of dev, and refuses one that others may have written to.
func (c *devCmd) folder() error {
	_, err := os.Lstat(c.Dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := private.Dir(c.Dir); err != nil {
		return err
	}
	if made {
		_ = private.Create(filepath.Join(c.Dir, ".gitignore"), []byte("*\n")) // what lies here is nobody else's
	}
	return nil
}

// tell leaves the URL, which has a password, and the namespace where other commands of this user find them, until remove is
// called. Where nothing else has to be kept, a folder that cannot be written is no reason not to run.
func (c *devCmd) tell(url, namespace string) (f urlFile, remove func(), err error) {
	var refusal *private.Refusal
	dir := c.Dir
	if err := c.folder(); errors.As(err, &refusal) {
		return "", nil, refusePrivate("dir", c.Dir, err, "")
	} else if err != nil {
		if dir, err = os.MkdirTemp("", "onbeat-dev-"); err != nil { // for this user only
			return "", nil, err
		}
	}
	f = urlFile(filepath.Join(dir, devURLFile))
	name := filepath.Join(dir, devNamespaceFile)
	remove = func() {
		_ = os.Remove(string(f))
		_ = os.Remove(name)
		if dir != c.Dir {
			_ = os.Remove(dir)
		}
	}
	if err := private.Replace(name, []byte(namespace+"\n")); err != nil {
		return "", nil, err
	}
	return f, remove, f.write(url)
}

// greet says what runs, and what to try.
func (c *devCmd) greet(a *app, redis *embedded.Server, file urlFile, own bool) error {
	cfg, err := a.loadConfig(a.Config)
	if err != nil {
		return err
	}
	namespace, err := a.namespaceOf(cfg)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(struct {
			Redis     string `json:"redis"`
			URL       string `json:"url"`
			Address   string `json:"address"`
			Namespace string `json:"namespace"`
			Config    string `json:"config"`
		}{redis.String(), file.absolute(), redis.Addr(), namespace, a.Config})
	}
	program := "onbeat"
	if strings.ContainsRune(os.Args[0], os.PathSeparator) {
		program = os.Args[0]
	}
	where, flags := ", in this folder", ""
	if !c.isFound(a, file) {
		where, flags = "", fmt.Sprintf(" --redis %s --namespace %s", file.argument(), namespace)
	}
	a.printf("Redis: %s, at %s", redis, redis.Addr())
	a.printf("URL: %s, namespace: %s, config: %s", a.style.bold(file.argument()), namespace, a.Config)
	if own {
		a.printf("A heartbeat is due every 5s; see it below. Change the config file to your liking.")
	}
	if cfg.Redis.URL != "" {
		a.printf("The redis.url of the config is not used here: onbeat serve uses it.")
	}
	// In one write, for the instance's own lines come out beside these.
	a.printf(`
Try in another terminal%[3]s:
  %[1]s enqueue echo --payload '{"hello":"world"}' --in 3s%[2]s
  %[1]s schedules list%[2]s
  %[1]s audit%[2]s
`, program, flags, where)
	return nil
}
