package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Caps bound the records that would otherwise grow without end. The zero value means the defaults.
type Caps struct {
	// Dead is how many dead tasks are kept; the oldest leave first. Default 10,000.
	Dead int
	// Done is how many finished tasks are kept, even if their Keep is not over. Default 100,000.
	Done int
	// History is about how many entries the history keeps. An entry holds a batch of slots. Default 100,000.
	History int
	// Events is about how many events are kept. Default [MaxEvents], which is also the maximum.
	Events int
	// Archive is how many entries Redis keeps for an archive that has not read them yet: of the history, in place of History if
	// it is more, and of the runs of other tasks. If it is positive, instances note every run, see [history.Notes]. Default: one
	// for each 128 bytes of Buffer, which no more fit into; 0 without Buffer: there is no archive.
	Archive int
	// Buffer is about how many bytes the history and the runs of other tasks may take in Redis together, with an archive: the
	// leader removes the oldest, archived or not; see [Queue.TrimToBuffer]. At least [LeastBuffer]. Default 0: only Archive
	// bounds them.
	Buffer int64
	// Output is how many bytes of each run's output are noted for the archive: at most [MaxOutput]. Default 1 KiB; a negative
	// number: none.
	Output int
}

// LeastBuffer is the least Buffer that Caps may have.
const LeastBuffer = 1 << 20

// MaxOutput is the most that is noted of an output.
const MaxOutput = 16 << 10

// MaxEvents is the most events that are kept. The scripts of package instance write events too, and cut the stream to this
// length.
const MaxEvents = 10_000

// Validate refuses, with a [*task.FieldError] for each, caps that the scripts could not keep: Events over [MaxEvents], a negative
// Archive, a Buffer under [LeastBuffer], Output over [MaxOutput].
func (c Caps) Validate() error {
	var list []error
	refuse := func(name string, value int64, reason, hint string) {
		list = append(list, &task.FieldError{Field: name, Value: strconv.FormatInt(value, 10), Reason: reason, Hint: hint})
	}
	if c.Events > MaxEvents {
		refuse("events", int64(c.Events), "out of range", fmt.Sprintf("1 to %d, which is the default", MaxEvents))
	}
	if c.Archive < 0 {
		refuse("archive", int64(c.Archive), "negative", "entries; 0 for the default")
	}
	if c.Buffer < 0 || c.Buffer > 0 && c.Buffer < LeastBuffer {
		refuse("buffer", c.Buffer, "out of range", "1MiB or more, such as 512MiB")
	}
	if c.Output > MaxOutput {
		refuse("output", int64(c.Output), "out of range", fmt.Sprintf("at most %d bytes", MaxOutput))
	}
	return wording.Join(list...)
}

// WithDefaults returns the caps with each unset one set to its default.
func (c Caps) WithDefaults() Caps {
	for _, f := range []struct {
		value    *int
		fallback int
	}{{&c.Dead, 10_000}, {&c.Done, 100_000}, {&c.History, 100_000}, {&c.Events, MaxEvents}} {
		if *f.value <= 0 {
			*f.value = f.fallback
		}
	}
	if c.Output == 0 {
		c.Output = 1 << 10
	}
	if c.Archive == 0 {
		c.Archive = int(min(c.Buffer/leastEntry, math.MaxInt32))
	}
	return c
}

// ForArchive returns the caps of a namespace with an archive: Redis keeps 512 MiB for it by default.
func (c Caps) ForArchive() Caps {
	c.Buffer = cmp.Or(c.Buffer, 512<<20)
	return c
}

// history returns the cap of the history. An archive that is away for a while is to find there what it has not read.
func (c Caps) history() int { return max(c.History, c.Archive) }

// Queue gives access to the due sets of one partition, and to the records around them. It is safe for concurrent use. All
// state is in Redis.
type Queue struct {
	rdb  redis.UniversalClient
	part Partition
	keys Keys
	caps Caps
	seal *seal.Keys

	makers makers
}

// New returns the queue of a partition. It does not talk to Redis. It returns the errors of [Partition.Validate] and
// [Caps.Validate].
func New(rdb redis.UniversalClient, p Partition, caps Caps) (*Queue, error) {
	if err := errors.Join(p.Validate(), caps.Validate()); err != nil {
		return nil, err
	}
	if q := behind(rdb); q != nil {
		rdb = q.rdb
	}
	return &Queue{rdb: rdb, part: p, keys: p.Keys(), caps: caps.WithDefaults()}, nil
}

// Of returns the queue of a namespace on a client: the one whose [Queue.Client] that is, whichever partition it has, or else a new one
// with the default caps.
func Of(rdb redis.UniversalClient, namespace string) (*Queue, error) {
	if q := behind(rdb); q != nil && q.part.Namespace == namespace {
		return q, nil
	}
	return New(rdb, Partition{Namespace: namespace}, Caps{})
}

// Client returns a client of Redis that knows its queue: [Of] returns the queue again. Packages above take a client and a namespace. So a
// program can use each of them alone, and a dispatcher still gives all of them one queue, with its caps and its keys.
func (q *Queue) Client() redis.UniversalClient {
	return &store.Layer{UniversalClient: q.rdb, Over: q}
}

// Node returns the address of the node of Redis that holds the keys now, or "" if the client does not tell.
func (q *Queue) Node(ctx context.Context) string {
	if node := store.Node(ctx, q.rdb, q.keys.Meta); node != nil {
		return node.Options().Addr
	}
	return ""
}

// behind returns the queue whose [Queue.Client] a client is, or nil.
func behind(rdb redis.UniversalClient) *Queue {
	if l, ok := rdb.(*store.Layer); ok {
		q, _ := l.Over.(*Queue)
		return q
	}
	return nil
}

// Namespace returns the namespace that the partition is a part of.
func (q *Queue) Namespace() string { return q.part.Namespace }

// Caps returns how much the partition keeps.
func (q *Queue) Caps() Caps { return q.caps }

// Keys returns the names of the partition's keys.
func (q *Queue) Keys() Keys { return q.keys }

// SealWith makes the queue encrypt the payloads of the tasks that it adds. Call it before anything else.
func (q *Queue) SealWith(k *seal.Keys) { q.seal = k }

// Seal returns the keys that encrypt payloads, or nil.
func (q *Queue) Seal() *seal.Keys { return q.seal }

// Notes says which runs are noted: every one if there is an archive.
func (q *Queue) Notes() history.Notes {
	return history.Notes{Every: q.caps.Archive > 0, Output: max(q.caps.Output, 0)}
}

// Redis returns the client that New was given.
func (q *Queue) Redis() redis.UniversalClient { return q.rdb }

// Now returns the time by the clock of Redis, the only clock that decides anything.
func (q *Queue) Now(ctx context.Context) (time.Time, error) {
	return store.Now(ctx, q.rdb, q.keys.Meta)
}

// Lanes lists the lanes in use, in no order. The version rises whenever the list changes; [Queue.Cycle] and the heartbeat
// return it.
func (q *Queue) Lanes(ctx context.Context) (lanes []Lane, version int64, err error) {
	pipe := q.rdb.Pipeline()
	v := pipe.HGet(ctx, q.keys.Meta, "lanes") // first: a lane that is added in between only makes the caller read again
	names := pipe.HKeys(ctx, q.keys.Lanes)
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, 0, fmt.Errorf("list lanes: %w", store.Classify(err))
	}
	for _, name := range names.Val() {
		if l, err := ParseLane(name); err == nil {
			lanes = append(lanes, l)
		}
	}
	version, _ = v.Int64()
	return lanes, version, nil
}

// StrayLanes lists the names in the list of lanes that are no lane. Another program wrote them: no instance looks at their tasks.
func (q *Queue) StrayLanes(ctx context.Context) (names []string, err error) {
	all, err := q.rdb.HKeys(ctx, q.keys.Lanes).Result()
	if err != nil {
		return nil, fmt.Errorf("list lanes: %w", store.Classify(err))
	}
	for _, name := range all {
		if _, err := ParseLane(name); err != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Strict reports whether durability is strict: a write that too few replicas have is an error. See [store.Durability].
func (q *Queue) Strict() bool { return store.IsStrict(q.rdb) }
