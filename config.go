package onbeat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/split"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/outbox"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Config describes a dispatcher. Only Namespace is required.
type Config struct {
	// Namespace names the dispatcher: instances with the same namespace on the same Redis belong together.
	Namespace string
	// Partitions is into how many partitions the namespace is split, 1 to 256: each lies on one node of a Redis Cluster, and is a whole
	// dispatcher of its own keys. Choose once, several for each node; all processes of a namespace give the same. Default 1: the
	// namespace is not split. See docs/scaling.md.
	Partitions int
	// Release is the version that this process runs. All instances without one are of one release, older than any other: a
	// named release leads before them.
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
	// Outbox names a SQL database whose table onbeat_outbox this instance moves to Redis, as any other that names it: an
	// [outbox.SQL]. Default nil: none. See [Dispatcher.Outbox].
	Outbox outbox.Opener
	// Notify are the webhooks that are told what goes wrong; see package notify. Default: none.
	Notify []notify.Target
	// Heartbeat is the dead-man's switch that hears from this namespace while it keeps the beat, and says how the heartbeats of schedules
	// are sent. Give all instances the same. Default: none.
	Heartbeat notify.Heartbeat
	// Observer is told what the dispatcher does: see package telemetry. Default: nobody is. Give each dispatcher its own.
	Observer Observer
	// Log receives state changes and failures. By default warnings and errors go to [slog.Default], as it is when [New] is called:
	// a program that logs nothing of its own has them on stderr. [Quiet] discards them.
	Log zerolog.Logger
	// Slog receives them in place of Log, for a program that logs with log/slog. Set only one of the two; see [Slog].
	Slog slog.Handler
	// TracerProvider makes spans of what is enqueued, pushed and run; see docs/traces.md. Default nil: none.
	TracerProvider trace.TracerProvider
}

// Caps bound the records that Redis would otherwise keep without end. The zero value means the defaults.
type Caps struct {
	// Dead is how many dead tasks are kept; the oldest leave first. Default 10,000.
	Dead int
	// Done is how many finished tasks are kept, even if their Keep is not over. Default 100,000.
	Done int
	// History is about how many entries the history keeps. An entry holds a batch of slots. Default 100,000.
	History int
	// Events is about how many events are kept. Default 10,000, which is also the maximum.
	Events int
	// Buffer is about how many bytes the history and the runs of other tasks may take in Redis together, with an archive: the
	// leader removes the oldest, archived or not. At least 1 MiB. Default 512 MiB with an archive; without one it bounds nothing.
	Buffer int64
	// Output is how many bytes of each run's output are noted for the archive: at most 16 KiB. Default 1 KiB; a negative
	// number: none.
	Output int
}

// caps returns the caps of the queue, those of a namespace with an archive if there is one.
func (c *Config) caps() queue.Caps {
	k := c.Caps
	caps := queue.Caps{Dead: k.Dead, Done: k.Done, History: k.History, Events: k.Events, Buffer: k.Buffer, Output: k.Output}
	if c.Archive != nil {
		caps = caps.ForArchive()
	}
	return caps
}

// Observer is told what a dispatcher does, as it happens. Each room says what it tells; none waits for more than the call. The
// methods may be called from several goroutines at once, and must not block. Package telemetry has one that keeps metrics.
type Observer interface {
	consumer.Observer
	outbox.Observer
	notify.Observer
	// Called is called after each call of a script of Redis, with its name, the time that the caller waited, and its error.
	Called(script string, took time.Duration, err error)
	// PrimarySuspected is called when claims are held back, because the primary of Redis may not be the primary any more.
	PrimarySuspected()
	// ArchiveLost is told of entries that Redis dropped before they were archived. If Redis does not tell how many, it is one.
	ArchiveLost(entries int64)
	// Bind tells the observer where it may read, and returns what is to be told of leading there. [New] calls it for each partition, with
	// a client that knows its partition, before anything happens, and returns its error.
	Bind(rdb redis.UniversalClient, namespace string) (PartitionObserver, error)
}

// PartitionObserver is told what happens in one partition of a namespace. A namespace that is not split has one.
type PartitionObserver interface {
	producer.Observer
	instance.Observer
	// ArchiveBehind is told how many entries wait in Redis to be archived, as far as Redis tells. A negative number says that
	// this instance no longer archives.
	ArchiveBehind(entries int64)
}

// durability returns the settings of durability. If the caller set no Report, it logs the reports.
func (c *Config) durability() store.Durability {
	d := store.Durability(c.Durability)
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
	return errors.Join(split.Check(c.Partitions), c.instance().Validate(), c.consumer().Validate(), field.In("durability", store.Durability(c.Durability).Validate()),
		field.In("caps", c.caps().Validate()), limit,
		c.checkSecret(), field.In("encryption", c.Encryption.Validate()), c.checkOpeners(), notify.Validate(c.Notify), field.In("heartbeat", c.Heartbeat.Validate()))
}

func (c Config) checkOpeners() (err error) {
	if c.Archive != nil {
		err = c.Archive.Validate()
	}
	if c.Outbox != nil {
		err = errors.Join(err, c.Outbox.Validate())
	}
	return err
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
		ReadyCheck: c.ReadyCheck, Concurrency: cmp.Or(c.Concurrency, consumer.DefaultConcurrency), Durable: c.Durability.Replicas > 0, Log: c.Log,
	}
}

func (c Config) consumer() consumer.Config {
	return consumer.Config{
		Concurrency: c.Concurrency, Queues: c.Queues, Strict: c.Strict, Limits: c.Limits, Drain: c.Drain, Hurry: c.Hurry,
		Secret: c.Secret, Observer: c.Observer, Log: c.Log, TracerProvider: c.TracerProvider,
	}
}

// Dial returns a Redis client for a URL, tuned for a [Dispatcher]. It does not connect yet; close it when done.
//
//	redis://user:password@host:6379/0
//	redis-sentinel://user:password@host:26379,host:26379/master-name/0
//	redis-cluster://user:password@host:6379,host:6379
//
// With rediss:// the connection is encrypted. Dial refuses an invalid URL with a [*task.FieldError], which does not show
// its password. docs/reference.md has the parameters for certificates; the others
// are those of go-redis.
func Dial(rawURL string) (redis.UniversalClient, error) { return Dialer{}.Dial(rawURL) }

// Dialer is [Dial] with a log. The zero value is Dial.
type Dialer struct {
	// Log receives a warning for sentinels that name a server which is not a primary. The zero Logger discards it.
	Log zerolog.Logger
}

// Dial is [Dial].
func (d Dialer) Dial(rawURL string) (redis.UniversalClient, error) {
	return store.Dialer(d).Dial(rawURL)
}

// Durability says for how many replicas a write waits (the WAIT of Redis).
//
// A write that Redis answered is on that many replicas, so it outlives the primary if one of them is promoted. This is no
// consensus: a sentinel may promote another replica. Unless Strict is set, too few or too slow replicas do not stop the
// work: it goes on, is as durable as without, and Report is called.
type Durability struct {
	// Replicas is how many replicas must have a write before a call returns. Default 0: calls do not wait.
	Replicas int
	// Timeout is how long a call waits for them. Default 200ms, at most 2s, and less than the client's read timeout.
	Timeout time.Duration
	// Strict: a write that too few replicas have returns [task.ErrUnreplicated], and the caller retries. So no task begins
	// whose claim the next primary may not have, and no task begins while there are too few replicas. If Replicas is the
	// number of all replicas, no slot runs twice in a failover.
	Strict bool
	// Report is called when there are too few replicas, with how many there were, and when there are enough again. Default: a
	// [Dispatcher] logs it.
	Report func(replicas int, enough bool)
}

// Durable returns a client whose scripts return once replicas have their writes. Give it to package lock. A [Dispatcher]
// makes its own from [Config.Durability]. Closing the client closes rdb.
func Durable(rdb redis.UniversalClient, d Durability) redis.UniversalClient {
	return store.Durable(rdb, store.Durability(d))
}
