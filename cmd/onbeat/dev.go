package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/internal/embedded"
	"github.com/onbeat/onbeat/internal/private"
)

type devCmd struct {
	Dir       string `default:".onbeat" placeholder:"DIR" help:"Folder for the data of the redis-server (default ${default})."`
	Port      int    `placeholder:"N" help:"Port of the Redis on 127.0.0.1. Default: a free one."`
	InProcess bool   `help:"Use the Redis inside this process even if a redis-server is on PATH. It keeps nothing."`
	Release   string `placeholder:"R" help:"Version that this instance runs."`
	AllowExec bool   `help:"Let tasks run programs on this machine (the exec handler)."`
	Listen    string `placeholder:"ADDR" help:"Where to serve the API and the dashboard, in place of the config's api.listen (or $$ONBEAT_DEV_LISTEN). If others reach it and the config has no tokens, dev makes one."`
	Open      bool   `help:"Open the dashboard in your browser ($$BROWSER, or that of the system)."`
}

// Help is shown by onbeat dev --help.
func (c *devCmd) Help() string {
	return "Runs an instance like serve, with a Redis of its own. That is the redis-server on PATH as a child process, which keeps " +
		"its data in .onbeat/ from one run to the next; without one it is a Redis inside this process. Without a config file, " +
		"dev writes a small one to .onbeat/dev.yaml for you to change.\n\n" +
		"The Redis gets a new password at each start, which keeps out other users of this machine. While dev runs, your other " +
		"commands in the same folder find its Redis; from another folder, pass --redis file:DIR/.onbeat/redis.url -n dev, or the namespace of your config. A Redis that a " +
		"flag or the environment names takes precedence. dev does not use the redis, the archive and the outbox of your config, which " +
		"are those of other instances; --archive names an archive. It does send notifications to the targets of the config."
}

// sampleConfig is the config that a newcomer begins with.
const sampleConfig = `# The config of onbeat dev. Change it, then restart or send SIGHUP: dev reads it again.
namespace: dev
schedules:
  - name: heartbeat
    every: 5s             # or cron: "*/5 * * * *"
    task: echo            # or http, with payload: {url: https://example.com/hook}
    payload: {message: "a beat"}
  - name: report          # takes a while: see it run
    cron: "* * * * *"
    task: sleep
    payload: {for: 5s}
  - name: flaky           # a run in five fails, and is tried again
    every: 10s
    task: sleep
    payload: {for: 300ms, fail: 0.2}
`

// Run runs an instance and its Redis until ctx ends.
func (c *devCmd) Run(ctx context.Context, a *app) error {
	if a.Redis != "" {
		return &usageError{"dev starts its own Redis, and --redis names another", "use onbeat serve with that one"}
	}
	namespace, own, err := c.prepare(a)
	if err != nil {
		return err
	}
	redis, err := embedded.Start(ctx, embedded.Options{Dir: c.Dir, Port: c.Port, InProcess: c.InProcess})
	if err != nil {
		return err
	}
	defer func() { _ = redis.Close() }() // after the instance has deregistered
	a.Redis, a.ownRedis = redis.URL(), true
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
	go func() { // without this, the instance would wait for Redis to come back
		select {
		case <-redis.Done():
			stop()
		case <-ctx.Done():
		}
	}()
	token := ""
	serve := serveCmd{Release: c.Release, AllowExec: c.AllowExec, adjust: func(cfg *config.File) { token = c.listen(a, cfg) }, serving: func(url string) {
		url = strings.NewReplacer("//0.0.0.0:", "//127.0.0.1:", "//[::]:", "//127.0.0.1:").Replace(url) // a browser cannot open all addresses
		if url != "" && !a.JSON {
			a.printf("Dashboard: %s, and the API, with its description at %s/docs", a.style.bold(url), url)
		}
		if token != "" {
			a.printf("Token of the dashboard and the API: %s", a.style.bold(token))
		}
		if c.Open {
			c.open(a, url)
		}
	}}
	err = serve.Run(ctx, a)
	return cmp.Or(redis.Err(), err)
}

// devToken stands for the variable that would hold the token that dev makes.
const devToken = "ONBEAT_DEV_TOKEN"

// listen puts the address of --listen into a config. If others reach that address and the config has no tokens, listen makes one,
// and returns it.
func (c *devCmd) listen(a *app, cfg *config.File) (token string) {
	address := cmp.Or(c.Listen, a.env("ONBEAT_DEV_LISTEN"))
	if address == "" {
		return ""
	}
	cfg.API.Listen = address
	if cfg.API.CheckOpen() == nil {
		return ""
	}
	token = rand.Text()
	cfg.API.Tokens = []config.Token{{Name: "dev", Role: "admin", Env: devToken}}
	env := a.env
	a.env = func(name string) string {
		if name == devToken {
			return token
		}
		return env(name)
	}
	return token
}

// open opens the dashboard. If that cannot be, dev runs all the same.
func (c *devCmd) open(a *app, url string) {
	if url == "" {
		fmt.Fprintln(a.err, "onbeat: there is no dashboard to open (api.listen is off, or its default address is taken)")
		return
	}
	if err := a.browse(url); err != nil {
		fmt.Fprintf(a.err, "onbeat: %s (open %s yourself)\n", said(err), url)
	}
}

// prepare finds the config and the namespace. It reports whether the config is dev's own sample.
func (c *devCmd) prepare(a *app) (namespace string, own bool, err error) {
	if a.Config == "" {
		if a.Config, err = c.sample(a); err != nil {
			return "", false, err
		}
		own = true
	}
	cfg, err := a.loadConfig(a.Config) // a bad config fails before Redis starts
	if err != nil {
		return "", own, err
	}
	if cfg.Dispatcher.Namespace == "" {
		a.Namespace = cmp.Or(a.Namespace, a.env("ONBEAT_NAMESPACE"), "dev")
	}
	namespace, err = a.namespaceOf(cfg)
	return namespace, own, err
}

// sample returns dev's own config file, and makes it if it does not exist. It refuses a file that other users may have
// written, because this process would run its tasks.
func (c *devCmd) sample(a *app) (string, error) {
	if err := c.folder(); err != nil {
		return "", config.RefuseFile("dir", c.Dir, err, "name a folder that you can write to")
	}
	name := filepath.Join(c.Dir, "dev.yaml")
	a.private = name
	err := private.Create(name, []byte(sampleConfig))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("write the sample config: %w", err)
	}
	return name, nil
}

// folder makes the folder of dev, and refuses a folder that other users may have written to.
func (c *devCmd) folder() error {
	_, err := os.Lstat(c.Dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := private.Dir(c.Dir); err != nil {
		return err
	}
	if made {
		_ = private.Create(filepath.Join(c.Dir, ".gitignore"), []byte("*\n")) // the folder belongs in no repository
	}
	return nil
}

// tell writes the URL, which has a password, and the namespace to where other commands of this user find them. The returned
// function removes them. If dev keeps no data in the folder, it runs also when it cannot write there.
func (c *devCmd) tell(url, namespace string) (f urlFile, remove func(), err error) {
	var refusal *private.Refusal
	dir := c.Dir
	if err := c.folder(); errors.As(err, &refusal) {
		return "", nil, config.RefuseFile("dir", c.Dir, err, "")
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

// warn tells what dev leaves out of a config, and what it uses although it leaves this machine.
func (c *devCmd) warn(cfg *config.File, a *app, tell func(line string)) {
	if cfg.Redis.URL != "" {
		tell("dev does not use the redis.url of the config; onbeat serve does.")
	}
	if cfg.Archive.URL != "" && a.Archive == "" {
		tell("dev does not use the archive.url of the config; name one with --archive.")
	}
	if cfg.Dispatcher.Outbox != nil {
		tell("dev does not use the outbox.url of the config: its tasks are for the instances that onbeat serve runs.")
	}
	if cfg.Notify.Len() > 0 {
		tell("dev sends notifications to the targets of the config.")
	}
}

// greet prints what runs, and commands to try.
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
		c.warn(cfg, a, func(line string) { fmt.Fprintln(a.err, "onbeat:", line) })
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
	a.printf("Redis: %s, at %s", redis, redis.Addr())
	a.printf("URL: %s, namespace: %s, config: %s", a.style.bold(file.argument()), namespace, a.Config)
	if own {
		a.printf("A heartbeat is due every 5s; see it below. Change the config file to your liking.")
	}
	c.warn(cfg, a, func(line string) { a.printf("%s", line) })
	// Each is one write, because the instance prints its own lines at the same time.
	const try = `
Try in another terminal%[1]s:
  %[2]s enqueue echo --payload '{"hello":"world"}' --in 3s%[3]s
  %[2]s schedules list%[3]s
  %[2]s audit%[3]s
`
	if c.isFound(a, file) {
		a.printf(try+"From another folder, add --redis %[4]s -n %[5]s\n", ", in this folder", program, "", file.anywhere().argument(), namespace)
	} else {
		a.printf(try, "", program, fmt.Sprintf(" --redis %s -n %s", file.argument(), namespace))
	}
	return nil
}
