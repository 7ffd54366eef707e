package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/telemetry"
)

type serveCmd struct {
	Release   string `placeholder:"R" help:"Version that this instance runs. Default: $$ONBEAT_RELEASE, the config, or the revision in the build, or its version."`
	AllowExec bool   `help:"Let tasks run programs on this machine (the exec handler)."`

	serving func(url string)   // hears where the API is, "" for nowhere
	adjust  func(*config.File) // changes a config that has been checked; may be nil
}

// Run runs an instance until ctx ends.
func (c *serveCmd) Run(ctx context.Context, a *app) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, hangup)
	defer signal.Stop(hangups)
	cfg, err := c.config(a)
	if err != nil {
		return err
	}
	if c.adjust != nil {
		c.adjust(cfg)
	}
	log := a.log(cfg.Log.Threshold(), cfg.Log.Format)
	if c.AllowExec {
		if err := hideMemory(); err != nil {
			log.Warn().Err(err).Msg("commands can read the environment of this process")
		}
	}
	target, err := a.redisOf(cfg)
	if err != nil {
		return err
	}
	web, err := a.listenAPI(cfg, log)
	if err != nil {
		return err
	}
	defer web.close() // after the instance has deregistered: it is asked meanwhile
	rdb, err := config.Dial(onbeat.Dialer{Log: log}, target.url)
	if err != nil {
		return err
	}
	defer func() { _ = rdb.Close() }()
	own := target.cfg
	own.Archive = kept(own.Archive)
	if env := a.env("ONBEAT_RELEASE"); c.Release == "" && env != "" && own.Release != "" && env != own.Release {
		log.Warn().Str("release", env).Str("config", own.Release).Msg("ONBEAT_RELEASE overrides the release of the config")
	}
	named := c.named(a, own.Release)
	own.Release, own.Log = cmp.Or(named, buildVersion()), log
	own.Hurry = hurryOf(ctx)
	if own.Notify, err = cfg.Notify.Targets(a.env); err != nil {
		return err
	}
	if own.Heartbeat, err = cfg.Heartbeat.Resolve(a.env); err != nil {
		return err
	}
	registry, metrics, err := telemetry.NewRegistry(telemetry.Options{Version: buildVersion(), Release: own.Release})
	if err != nil {
		return err
	}
	own.Observer = metrics
	if web != nil {
		web.secrets.count = metrics.SecretUnreadable
	}
	traces, err := a.newTraces(ctx, log)
	if err != nil {
		return err
	}
	defer traces.flush(own.Hurry, log)
	own.TracerProvider = traces.TracerProvider
	d, err := onbeat.New(rdb, own)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }()
	if err := c.equip(d, cfg, log); err != nil {
		return err
	}
	if err := c.serve(ctx, web, target, d, telemetry.Handler(registry)); err != nil {
		return err
	}
	announce(target, cfg, &own, named != "", log)
	background, stop := context.WithCancel(ctx)
	defer stop()
	go c.reload(background, hangups, a, d, target, log)
	if s := newSupervisor(a.env, log); s != nil {
		s.unready, s.alive = d.Unready, web.alive
		done, end := context.WithCancel(context.WithoutCancel(ctx))
		var told sync.WaitGroup
		told.Go(func() { s.run(ctx, done) })
		defer func() { end(); told.Wait() }()
	}
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errTold) {
			log.Info().Msg("stopping: on a second signal (Ctrl-C) the instance hands back its running tasks and stops at once")
		}
	})()
	if err := d.Run(ctx); err != nil {
		return err
	}
	select {
	case <-own.Hurry:
		return errSaid
	default:
		return nil
	}
}

// equip registers the handlers that the program brings, and declares the schedules of the config.
func (c *serveCmd) equip(d *onbeat.Dispatcher, cfg *config.File, log zerolog.Logger) error {
	builtin := cfg.Handlers
	builtin.AllowExec, builtin.Log, builtin.Exec.Log = c.AllowExec, log, log
	for typ, h := range handlers.Builtin(builtin) {
		if err := d.Handle(typ, h); err != nil {
			return err
		}
	}
	return d.Declare(cfg.Schedules)
}

// announce logs what starts, and what its operator should know.
func announce(t target, cfg *config.File, own *onbeat.Config, named bool, log zerolog.Logger) {
	log.Info().Str("namespace", own.Namespace).Str("redis", secret.URL(t.url)).Str("version", buildVersion()).
		Int("schedules", len(cfg.Schedules)).Msg("starting")
	if own.Archive != nil {
		log.Info().Str("archive", own.Archive.String()).Msg("archiving, while this instance leads")
	}
	sayUndeclared(cfg, log)
	for _, c := range t.cautions() {
		log.Warn().Str("hint", c.Hint).Msg(c.Detail)
	}
	for _, p := range config.ProblemsOf(cfg.Lacking()) {
		log.Warn().Err(p).Msg("each run of a schedule will fail here")
	}
	if !named { // two different builds of one version would count as one release
		log.Warn().Str("release", own.Release).Str("hint", "name one: --release, ONBEAT_RELEASE, or release in the config").
			Msg("no release is named, and the build has no revision: taking its version")
	}
}

// sayUndeclared says that a config declares nothing, so that nobody takes it for a list that is empty.
func sayUndeclared(cfg *config.File, log zerolog.Logger) {
	if cfg.Schedules == nil {
		log.Info().Msg("the config has no key schedules: the schedules of earlier releases stay as they are")
	}
}

// errStopping is why an instance that was told to stop is not ready.
var errStopping = errors.New("the instance is stopping")

// serve begins to serve the API, if there is one.
func (c *serveCmd) serve(ctx context.Context, w *web, t target, d *onbeat.Dispatcher, metrics http.Handler) error {
	url := ""
	if w != nil {
		err := w.open(t, func() error {
			if ctx.Err() != nil {
				return errStopping
			}
			return d.Unready()
		}, metrics)
		if err != nil {
			return err
		}
		w.start()
		url = w.url()
	}
	if c.serving != nil {
		c.serving(url)
	}
	return nil
}

// config reads the config file. It returns the defaults if the user names no file.
func (c *serveCmd) config(a *app) (*config.File, error) {
	if a.Config == "" {
		return &config.File{}, nil
	}
	cfg, err := a.loadConfig(a.Config)
	if err != nil {
		return nil, err
	}
	return cfg, cfg.CheckExec(c.AllowExec)
}

// named returns the release that the operator or the build names, or "".
func (c *serveCmd) named(a *app, configured string) string {
	return cmp.Or(c.Release, a.env("ONBEAT_RELEASE"), configured, buildRevision())
}

// reload declares the schedules of the config file again at each hangup. It applies nothing else of the file.
func (c *serveCmd) reload(ctx context.Context, hangups <-chan os.Signal, a *app, d *onbeat.Dispatcher, was target, log zerolog.Logger) {
	for {
		select {
		case <-hangups:
		case <-ctx.Done():
			return
		}
		cfg, err := c.config(a)
		if err == nil {
			err = was.checkReferences(cfg.Schedules)
		}
		if err == nil {
			err = d.Declare(cfg.Schedules)
		}
		if err != nil {
			log.Error().Err(err).Msg("kept the old schedules: the config cannot be used")
			continue
		}
		log.Info().Int("schedules", len(cfg.Schedules)).Msg("read the schedules again")
		sayUndeclared(cfg, log)
		for _, p := range config.ProblemsOf(cfg.Lacking()) {
			log.Warn().Err(p).Msg("each run of a schedule will fail here")
		}
		if now, err := a.redisOf(cfg); err != nil || now.url != was.url || now.cfg.Namespace != was.cfg.Namespace {
			log.Warn().Err(err).Msg("redis and namespace change only with a restart")
		}
	}
}

// checkReferences refuses schedules whose payloads or heartbeats refer to a variable that the handlers of this process may not pass on: they keep
// the http.pass_env that they were started with, so each run would fail.
func (t target) checkReferences(list []producer.Schedule) error {
	for i := range list {
		field, names := "heartbeat", list[i].Heartbeat.Env()
		if list[i].Task == "http" {
			field, names = "payload or heartbeat", append(names, handlers.HTTPEnv(list[i].Payload)...)
		}
		for _, name := range names {
			if !slices.Contains(t.passEnv, name) {
				return fmt.Errorf("schedule %q: %w", list[i].Name, refuse(field, "${"+name+"}",
					"this instance was started without that variable in http.pass_env", "restart the instance"))
			}
		}
	}
	return nil
}
