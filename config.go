package onbeat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/task"
)

// Config describes a dispatcher. Only Namespace is required.
type Config struct {
	// Namespace names the dispatcher: instances with the same namespace on the same Redis belong together.
	Namespace string
	// Release is the version that this process runs. All instances without one count as the same release.
	Release string

	// Lead, Consume, Standby, Lease, MinReady and ReadyCheck say how instances share the work; see instance.Config.
	Lead       instance.Lead
	Consume    instance.Consume
	Standby    bool
	Lease      time.Duration
	MinReady   time.Duration
	ReadyCheck func(context.Context) error

	// Concurrency, Queues, Strict, Limits, Drain and Hurry say how tasks are run; see consumer.Config.
	Concurrency int
	Queues      map[string]int
	Strict      bool
	Limits      map[string]int
	Drain       time.Duration
	Hurry       <-chan struct{}

	// Durability says how many replicas of Redis must have a write; see [Durability]. Default: none.
	Durability Durability
	// PayloadLimit is the largest size of a payload, in bytes. Default 1 MiB.
	PayloadLimit int
	// Secret are, by type, the paths of payloads whose values are shown to nobody who only looks on, nor in any log; see
	// [task.Secret]. A task keeps those with which it was added.
	Secret map[string][]string
	// Encryption encrypts payloads at rest. Default: no keys, and payloads are stored as they are.
	Encryption task.Encryption
	// Caps bound what Redis keeps of finished work, and for an archive that is away. Give all instances of the namespace the same.
	Caps Caps
	// Archive keeps what became of every run, longer than Redis does: a sqlarchive.Config is an SQL database, see docs/archive.md.
	// All processes of a namespace should name the same one. Default nil: none.
	Archive archive.Opener
	// Outbox names a SQL database whose table onbeat_outbox this instance moves to Redis, as any other that names it: a
	// sqloutbox.Config. Default nil: none. See [Dispatcher.Outbox].
	Outbox outbox.Opener
	// Notify are the webhooks that are told what goes wrong; see package notify. Default: none.
	Notify []notify.Target
	// Observer is told what the dispatcher does: see package telemetry. Default: nobody is. Give each dispatcher its own.
	Observer Observer
	// Log receives state changes and failures. The zero Logger discards them.
	Log zerolog.Logger
	// Slog receives them in place of Log, for a program that logs with log/slog. Set only one of the two; see [Slog].
	Slog slog.Handler
	// TracerProvider makes spans of what is enqueued, pushed and run; see docs/traces.md. Default nil: none.
	TracerProvider trace.TracerProvider
}

// durability returns the settings of durability. If the caller set no Report, it logs the reports.
func (c *Config) durability() store.Durability {
	d := c.Durability
	if d.Report == nil {
		d.Report = func(n int, enough bool) {
			if enough {
				c.Log.Info().Int("replicas", n).Msg("writes are on enough replicas again")
				return
			}
			c.Log.Warn().Int("replicas", n).Int("want", d.Replicas).Msg("writes are on too few replicas: a failover may lose them")
		}
	}
	return d
}

// Validate refuses invalid settings, with a [*task.FieldError] for each. It does not talk to Redis, and does not require a
// namespace: [New] does.
func (c Config) Validate() error {
	var limit error
	if c.PayloadLimit < 0 {
		limit = &task.FieldError{Field: "payload_limit", Value: fmt.Sprint(c.PayloadLimit), Reason: "negative", Hint: "bytes; the default is 1 MiB"}
	}
	return errors.Join(c.instance().Validate(), c.consumer().Validate(), c.Durability.Validate(), c.Caps.Validate(), limit,
		c.checkSecret(), field.In("encryption", c.Encryption.Validate()), c.checkArchive(), c.checkOutbox(), notify.Validate(c.Notify))
}

func (c Config) checkSecret() error {
	var list []error
	for _, typ := range slices.Sorted(maps.Keys(c.Secret)) {
		list = append(list, task.CheckName("secret", typ), task.CheckSecret("secret."+typ, c.Secret[typ]))
	}
	return errors.Join(list...)
}

func (c Config) instance() instance.Config {
	return instance.Config{
		Release: c.Release, Lead: c.Lead, Consume: c.Consume, Standby: c.Standby, Lease: c.Lease, MinReady: c.MinReady,
		ReadyCheck: c.ReadyCheck, Concurrency: c.Concurrency, Durable: c.Durability.Replicas > 0, Observer: c.Observer, Log: c.Log,
	}
}

func (c Config) consumer() consumer.Config {
	return consumer.Config{
		Concurrency: c.Concurrency, Queues: c.Queues, Strict: c.Strict, Limits: c.Limits, Drain: c.Drain, Hurry: c.Hurry,
		Secret: c.Secret, Observer: c.Observer, Log: c.Log, TracerProvider: c.TracerProvider,
	}
}
