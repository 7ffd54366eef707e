package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/api/dashboard"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// defaultListen is where the API is served if the config does not say.
const defaultListen = "127.0.0.1:8080"

// secretsTime is how often the tokens and certificates of the API are read again.
const secretsTime = 5 * time.Second

// web is the API of this process. It has its own connections to Redis, so that requests hold up no task.
type web struct {
	listener net.Listener
	secrets  *secrets
	log      zerolog.Logger
	rdb      redis.UniversalClient
	d        *onbeat.Dispatcher
	server   *api.Server

	stop context.CancelFunc
	work sync.WaitGroup
}

// listenAPI takes the address of the API. It returns nil if the API is off, or if the default address is taken.
func (a *app) listenAPI(cfg *config.File, log zerolog.Logger) (*web, error) {
	if cfg.API.Listen == config.ListenOff {
		return nil, nil //nolint:nilnil // there is no API, which is no error
	}
	s, err := newSecrets(&cfg.API, a.env, log)
	if err != nil {
		return nil, cfg.At(err)
	}
	address := cmp.Or(cfg.API.Listen, defaultListen)
	l, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return &web{listener: l, secrets: s, log: log}, nil
	case cfg.API.Listen == "" && len(cfg.API.Tokens) == 0:
		log.Warn().Err(errOf(err)).Str("listen", address).Str("hint", "set api.listen to another address, or to off").Msg("not serving the API: its default address cannot be used")
		return nil, nil //nolint:nilnil // as above
	}
	return nil, cfg.At(refuse("api.listen", address, errOf(err).Error(), "name another address, or off"))
}

// errOf returns the cause of an error of the network, without the address.
func errOf(err error) error {
	var system *os.SyscallError
	if errors.As(err, &system) {
		return system.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return errors.New(dns.Err)
	}
	return err
}

// open makes the server of the API. It does not talk to Redis.
func (w *web) open(t target, ready func() error, metrics http.Handler) (err error) {
	if w.rdb, err = config.Dial(onbeat.Dialer{Log: w.log}, t.url); err != nil {
		return err
	}
	t.cfg.Log = w.log
	d, err := t.dispatcher(w.rdb)
	if err != nil {
		return err
	}
	mux := config.NewMux()
	w.d = d
	pages, err := dashboard.New(dashboard.Config{
		Namespace: t.cfg.Namespace, Version: buildVersion(), Tokens: func() bool { return len(w.secrets.tokens()) > 0 },
	})
	if err != nil {
		return err
	}
	w.server, err = api.New(d.Admin(), api.Config{
		Namespace: t.cfg.Namespace, Version: buildVersion(), Limits: t.limits(), Tokens: w.secrets.tokens, BehindProxy: w.secrets.cfg.BehindProxy,
		Ready: ready, Metrics: metrics, Dashboard: pages, Log: w.log,
		CheckPayload: func(x *task.Task) error {
			marked := *x
			marked.Secret = secret.Join(x.Secret, t.cfg.Secret[x.Type])
			err := handlers.Hide(&marked, config.CheckPayload(mux, x.Type, x.Payload, false))
			if p, ok := errors.AsType[*handlers.PanicError](err); ok {
				w.log.Error().Err(err).Str("type", x.Type).Bytes("stack", p.Stack).Msg("the check of a payload panicked: the payload is refused")
			}
			return err
		},
	})
	return err
}

// start serves the API until close.
func (w *web) start() {
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.log.Info().Str("url", w.url()).Int("tokens", len(w.secrets.cfg.Tokens)).Bool("client_certificates", w.secrets.cfg.ClientCA != "").Msg("serving the API")
	w.work.Go(func() { w.secrets.follow(ctx, secretsTime) })
	w.work.Go(func() {
		if err := w.server.Serve(ctx, w.listener, w.secrets.settings()); err != nil {
			w.log.Error().Err(err).Msg("the API has stopped; the instance works on")
		}
	})
}

// url returns where the API is.
func (w *web) url() string {
	if w.secrets.cfg.Cert != "" {
		return "https://" + w.listener.Addr().String()
	}
	return "http://" + w.listener.Addr().String()
}

// alive asks the API of this process whether it answers. An API that wants a certificate is not asked, and nor is one that is off.
func (w *web) alive(ctx context.Context) error {
	if w == nil || w.secrets.cfg.ClientCA != "" {
		return nil
	}
	u, err := url.Parse(w.url())
	if err == nil {
		_, err = askHealth(ctx, u, "/healthz")
	}
	return err
}

// close ends the API within a few seconds. It may be called on nil, and before start.
func (w *web) close() {
	if w == nil {
		return
	}
	if w.stop != nil {
		w.stop()
		w.work.Wait()
	}
	_ = w.listener.Close()
	if w.d != nil {
		_ = w.d.Close()
	}
	if w.rdb != nil {
		_ = w.rdb.Close()
	}
}
