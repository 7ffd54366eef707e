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
// restart.
type secrets struct {
	cfg *config.API
	env func(string) string
	log zerolog.Logger

	now  atomic.Pointer[secretsRead]
	said string // the last failure that was logged
}

// secretsRead is what the files held when they were last good.
type secretsRead struct {
	tokens []api.Token
	conf   *tls.Config // nil: no TLS
	pem    [3][]byte
}

// newSecrets reads the secrets, and refuses those that cannot be used.
func newSecrets(cfg *config.API, env func(string) string, log zerolog.Logger) (*secrets, error) {
	s := &secrets{cfg: cfg, env: env, log: log}
	now, err := s.read()
	if err != nil {
		return nil, err
	}
	s.now.Store(now)
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

func (s *secrets) read() (*secretsRead, error) {
	r := &secretsRead{}
	holders := map[string]string{}
	for i := range s.cfg.Tokens {
		t := &s.cfg.Tokens[i]
		secret, err := t.Secret(s.env)
		if err != nil {
			return nil, err
		}
		if other, taken := holders[secret]; taken {
			return nil, refuse("api.tokens", "", fmt.Sprintf("%s and %s have the same secret", other, t.Name), "give each token its own")
		}
		holders[secret] = t.Name
		r.tokens = append(r.tokens, api.Token{Name: t.Name, Role: api.Role(t.Role), Secret: secret, Queues: t.Queues, Types: t.Types})
	}
	if s.cfg.Cert == "" {
		return r, nil
	}
	return r, r.readTLS(s.cfg)
}

// readTLS reads the certificate, its key, and the CAs of clients.
func (r *secretsRead) readTLS(cfg *config.API) error {
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
			return refuse("api.tls."+field, names[i], err.Error(), "name a PEM file that this user can read")
		}
	}
	pair, err := tls.X509KeyPair(r.pem[0], r.pem[1])
	if err != nil {
		return refuse("api.tls.cert", cfg.Cert, "cannot be used with api.tls.key: "+err.Error(), "PEM files of a certificate and of its key")
	}
	r.conf = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
	if cfg.ClientCA != "" {
		r.conf.ClientCAs, r.conf.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !r.conf.ClientCAs.AppendCertsFromPEM(r.pem[2]) {
			return refuse("api.tls.client_ca", cfg.ClientCA, "has no certificate", "a PEM file of the CAs of clients")
		}
	}
	return nil
}

// tokens returns the tokens that are let in now.
func (s *secrets) tokens() []api.Token { return s.now.Load().tokens }

// tls returns the settings of TLS, or nil. Each connection gets those of its time.
func (s *secrets) tls() *tls.Config {
	if s.cfg.Cert == "" {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return s.now.Load().conf, nil
	}}
}

// follow reads the secrets again until ctx ends. While they cannot be used, the old ones stay.
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
	now, err := s.read()
	if err != nil {
		if s.said != err.Error() { // once, not every few seconds
			s.said = err.Error()
			s.log.Error().Err(err).Msg("kept the old tokens and certificates of the API: the new ones cannot be used")
		}
		return
	}
	s.said = ""
	if was := s.now.Load(); !reflect.DeepEqual(was.tokens, now.tokens) || !reflect.DeepEqual(was.pem, now.pem) {
		s.now.Store(now)
		s.log.Info().Msg("read new tokens or certificates of the API")
	}
}
