package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/api"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
)

// secrets are the tokens and certificates of the API. They are read again now and then, so that they are replaced without a
// restart: each token by itself, and the certificates together.
type secrets struct {
	cfg   *config.API
	env   func(string) string
	log   zerolog.Logger
	count func(kind, name string) // counts those that could not be read

	now  atomic.Pointer[[]api.Token]
	tls  atomic.Pointer[tlsRead] // nil: no TLS
	said map[string]saying       // by the name of the token; "" for the certificates
}

// tlsRead is what the files of the certificates held when they were last good.
type tlsRead struct {
	conf *tls.Config
	pem  [3][]byte
}

// saying is a failure that was logged.
type saying struct {
	text string
	at   time.Time
}

// complainTime is how often a failure that lasts is logged.
const complainTime = time.Minute

// newSecrets reads the secrets, and refuses those that cannot be used. A token whose file is gone was withdrawn, perhaps while this
// process was not there: it is none.
func newSecrets(cfg *config.API, env func(string) string, log zerolog.Logger) (*secrets, error) {
	s := &secrets{cfg: cfg, env: env, log: log, count: func(string, string) {}, said: map[string]saying{}}
	list, faults := s.readTokens(nil)
	for _, f := range faults {
		if !f.gone {
			return nil, f.err
		}
	}
	s.tell(faults)
	s.now.Store(&list)
	if cfg.Cert != "" {
		read, err := readTLS(cfg)
		if err != nil {
			return nil, err
		}
		s.tls.Store(read)
	}
	for _, name := range append(s.files(), cfg.Key) {
		if mode, open := openToOthers(name); open {
			log.Warn().Str("file", name).Str("mode", fmt.Sprintf("%04o", mode)).Str("hint", "chmod 600").Msg("other users can read a secret of the API")
		}
	}
	return s, nil
}

// files lists the files with the secrets of tokens.
func (s *secrets) files() (list []string) {
	for i := range s.cfg.Tokens {
		list = append(list, s.cfg.Tokens[i].File)
	}
	return list
}

// readTLS reads the certificate, its key, and the CAs of clients.
func readTLS(cfg *config.API) (*tlsRead, error) {
	r := &tlsRead{}
	names := [3]string{cfg.Cert, cfg.Key, cfg.ClientCA}
	for i, field := range []string{"cert", "key", "client_ca"} {
		if names[i] == "" {
			continue
		}
		var err error
		if r.pem[i], err = os.ReadFile(names[i]); err != nil {
			var path *fs.PathError
			if errors.As(err, &path) {
				err = path.Err
			}
			return nil, refuse("api.tls."+field, names[i], err.Error(), "name a PEM file that this user can read")
		}
	}
	pair, err := tls.X509KeyPair(r.pem[0], r.pem[1])
	if err != nil {
		return nil, refuse("api.tls.cert", cfg.Cert, "cannot be used with api.tls.key: "+err.Error(), "PEM files of a certificate and of its key")
	}
	r.conf = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if cfg.ClientCA != "" {
		r.conf.ClientCAs, r.conf.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !r.conf.ClientCAs.AppendCertsFromPEM(r.pem[2]) {
			return nil, refuse("api.tls.client_ca", cfg.ClientCA, "has no certificate", "a PEM file of the CAs of clients")
		}
	}
	return r, nil
}

// tokens returns the tokens that are let in now. One that was withdrawn has no secret.
func (s *secrets) tokens() []api.Token { return *s.now.Load() }

// settings returns the settings of TLS, or nil. Each connection gets those of its time.
func (s *secrets) settings() *tls.Config {
	if s.cfg.Cert == "" {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return s.tls.Load().conf, nil
	}}
}

// follow reads the secrets again until ctx ends.
func (s *secrets) follow(ctx context.Context, every time.Duration) {
	if len(s.cfg.Tokens) == 0 && s.cfg.Cert == "" {
		return
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.again()
		case <-ctx.Done():
			return
		}
	}
}

func (s *secrets) again() {
	old := s.tokens()
	list, faults := s.readTokens(old)
	s.now.Store(&list)
	s.tell(faults)
	changed := false
	for i := range list {
		changed = changed || list[i].Secret != old[i].Secret && list[i].Secret != ""
		if list[i].Trouble == "" {
			delete(s.said, list[i].Name)
		}
	}
	if s.cfg.Cert != "" {
		changed = s.againTLS() || changed
	}
	if changed {
		s.log.Info().Msg("read new tokens or certificates of the API")
	}
}

// againTLS reads the certificates again, and reports whether they are others. While they cannot be used, the old ones stay.
func (s *secrets) againTLS() bool {
	read, err := readTLS(s.cfg)
	if err != nil {
		s.count("tls", "")
		if s.due("", err) {
			s.log.Error().Err(err).Msg("kept the old certificates of the API: the new ones cannot be used")
		}
		return false
	}
	delete(s.said, "")
	return !reflect.DeepEqual(s.tls.Swap(read).pem, read.pem)
}

// due reports whether to log a failure: it is new, or lasts.
func (s *secrets) due(name string, err error) bool {
	if last := s.said[name]; last.text == err.Error() && time.Since(last.at) < complainTime {
		return false
	}
	s.said[name] = saying{err.Error(), time.Now()}
	return true
}
