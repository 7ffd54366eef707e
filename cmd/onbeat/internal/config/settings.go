package config

import (
	"fmt"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/producer"
)

// settings is the file as it is written.
type settings struct {
	Redis struct {
		URL     text `yaml:"url"` // with ${NAME} in it, which reading the file puts in
		TLSCA   text `yaml:"tls_ca"`
		TLSCert text `yaml:"tls_cert"`
		TLSKey  text `yaml:"tls_key"`
	} `yaml:"redis"`
	Namespace  text    `yaml:"namespace"`
	Partitions nonzero `yaml:"partitions"`
	Release    text    `yaml:"release"`

	Lead        text               `yaml:"lead"`
	Consume     text               `yaml:"consume"`
	Standby     bool               `yaml:"standby"`
	Concurrency nonzero            `yaml:"concurrency"`
	Queues      map[string]integer `yaml:"queues"`
	Strict      bool               `yaml:"strict"`
	Limits      map[string]integer `yaml:"limits"`
	Lease       period             `yaml:"lease"`
	MinReady    duration           `yaml:"min_ready"`
	Drain       *duration          `yaml:"drain"`

	PayloadLimit nonzero             `yaml:"payload_limit"`
	Secret       map[string][]string `yaml:"secret"`
	Encryption   encryptionSettings  `yaml:"encryption"`
	Keep         keepSettings        `yaml:"keep"`
	Durability   durabilitySettings  `yaml:"durability"`
	Archive      archiveSettings     `yaml:"archive"`
	Outbox       outboxSettings      `yaml:"outbox"`
	API          apiSettings         `yaml:"api"`
	HTTP         httpSettings        `yaml:"http"`
	Exec         *execSettings       `yaml:"exec"`
	Log          struct {
		Level  text `yaml:"level"`
		Format text `yaml:"format"`
	} `yaml:"log"`

	Heartbeat heartbeatSettings   `yaml:"heartbeat"`
	Notify    []notifySettings    `yaml:"notify"`
	Schedules []producer.Schedule `yaml:"schedules"`
}

// keepSettings tells zero, which is refused, from a number that is not there.
type keepSettings struct {
	Dead    *integer `yaml:"dead"`
	Done    *integer `yaml:"done"`
	History *integer `yaml:"history"`
	Events  *integer `yaml:"events"`
}

type durabilitySettings struct {
	Replicas integer `yaml:"replicas"`
	Timeout  period  `yaml:"timeout"`
	Strict   bool    `yaml:"strict"`
}

type httpSettings struct {
	DenyPrivate   bool     `yaml:"deny_private"`
	Timeout       period   `yaml:"timeout"`
	MaxRedirects  nonzero  `yaml:"max_redirects"`
	RedirectBody  bool     `yaml:"redirect_body"`
	MaxRetryAfter period   `yaml:"max_retry_after"`
	IdlePerHost   nonzero  `yaml:"idle_per_host"`
	IdleTimeout   period   `yaml:"idle_timeout"`
	PassEnv       []string `yaml:"pass_env"`
}

type execSettings struct {
	Grace   period   `yaml:"grace"`
	PassEnv []string `yaml:"pass_env"`
	Output  nonzero  `yaml:"output"`
}

func (s *settings) dispatcher() onbeat.Config {
	return onbeat.Config{
		Namespace: string(s.Namespace), Partitions: int(s.Partitions), Release: string(s.Release),
		Lead: instance.Lead(s.Lead), Consume: instance.Consume(s.Consume), Standby: s.Standby,
		Lease: time.Duration(s.Lease), MinReady: time.Duration(s.MinReady),
		Concurrency: int(s.Concurrency), Queues: intsOf(s.Queues), Strict: s.Strict, Limits: intsOf(s.Limits), Drain: drainOf(s.Drain),
		Durability:   onbeat.Durability{Replicas: int(s.Durability.Replicas), Timeout: time.Duration(s.Durability.Timeout), Strict: s.Durability.Strict},
		PayloadLimit: int(s.PayloadLimit), Secret: s.Secret, Caps: s.Keep.caps(),
	}
}

func (s *settings) handlers() handlers.BuiltinConfig {
	h := s.HTTP
	b := handlers.BuiltinConfig{HTTP: handlers.HTTPConfig{
		DenyPrivate: h.DenyPrivate, Timeout: time.Duration(h.Timeout), MaxRedirects: int(h.MaxRedirects),
		RedirectBody: h.RedirectBody, MaxRetryAfter: time.Duration(h.MaxRetryAfter), IdlePerHost: int(h.IdlePerHost),
		IdleTimeout: time.Duration(h.IdleTimeout), PassEnv: h.PassEnv,
	}}
	if e := s.Exec; e != nil {
		b.Exec = handlers.ExecConfig{Grace: time.Duration(e.Grace), PassEnv: e.PassEnv, Output: int(e.Output)}
	}
	return b
}

func (k keepSettings) caps() onbeat.Caps {
	n := func(i *integer) int {
		if i == nil {
			return 0
		}
		return int(*i)
	}
	return onbeat.Caps{Dead: n(k.Dead), Done: n(k.Done), History: n(k.History), Events: n(k.Events)}
}

// zeros refuses numbers below one: zero would be taken for the default.
func (k keepSettings) zeros() (list []error) {
	for _, f := range []struct {
		name string
		n    *integer
	}{{"dead", k.Dead}, {"done", k.Done}, {"history", k.History}, {"events", k.Events}} {
		if f.n != nil && *f.n < 1 {
			list = append(list, refuse("keep."+f.name, fmt.Sprint(*f.n), "out of range", "1 or more; leave it out for the default"))
		}
	}
	return list
}
