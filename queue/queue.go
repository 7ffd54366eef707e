package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

// Caps bound what has no natural end. The zero value has the defaults.
type Caps struct {
	// Dead is how many dead tasks are kept, the newest. Default 10,000.
	Dead int
	// Done is how many finished tasks are kept, besides their time to be kept. Default 100,000.
	Done int
	// History is about how many entries the history of slots keeps; an entry holds a batch. Default 100,000.
	History int
	// Events is about how many state changes are kept. Default [MaxEvents], which is also the most.
	Events int
}

// MaxEvents is the most state changes that are kept. The scripts of package instance write events too, and cut the stream to
// this length.
const MaxEvents = 10_000

// Validate refuses, with a [*task.FieldError], a cap that Redis would not heed.
func (c Caps) Validate() error {
	if c.Events > MaxEvents {
		return &task.FieldError{
			Field: "keep.events", Value: strconv.Itoa(c.Events), Reason: "out of range", Hint: fmt.Sprintf("1 to %d, which is the default", MaxEvents),
		}
	}
	return nil
}

// WithDefaults spells out what is not set.
func (c Caps) WithDefaults() Caps {
	for _, f := range []struct {
		value    *int
		fallback int
	}{{&c.Dead, 10_000}, {&c.Done, 100_000}, {&c.History, 100_000}, {&c.Events, MaxEvents}} {
		if *f.value <= 0 {
			*f.value = f.fallback
		}
	}
	return c
}

// Queue is one partition's due sets and what belongs to them. It is safe for concurrent use and holds no state of its
// own, but for what [Queue.CaughtUp] returns: everything is in Redis.
type Queue struct {
	rdb  redis.UniversalClient
	keys Keys
	caps Caps

	caughtUp atomic.Int64 // unix ms
	lagging  atomic.Bool  // the last call failed, or left due work
}

// New returns the queue of a partition. It does not talk to Redis yet.
func New(rdb redis.UniversalClient, p Partition, caps Caps) (*Queue, error) {
	if err := errors.Join(p.Validate(), caps.Validate()); err != nil {
		return nil, err
	}
	return &Queue{rdb: rdb, keys: p.Keys(), caps: caps.WithDefaults()}, nil
}

// Keys are the names of the partition's keys.
func (q *Queue) Keys() Keys { return q.keys }

// Redis is the client the queue was made with.
func (q *Queue) Redis() redis.UniversalClient { return q.rdb }

// CaughtUp is the last moment, by the clock of Redis, up to which this process has seen all that it may claim be
// claimed; zero if it never has. Should Redis lose its memory, what was due by then need not be run again.
func (q *Queue) CaughtUp() time.Time { return store.FromMs(q.caughtUp.Load()) }

// Lagging reports whether due work may be waiting that this process has not claimed: its last call failed, left some, or took
// as much as it had workers for.
func (q *Queue) Lagging() bool { return q.lagging.Load() }

func (q *Queue) noteCaughtUp(r *CycleRequest, out *CycleReply) {
	if !out.MayClaim {
		return
	}
	q.lagging.Store(out.LeftDue || r.Want > 0 && len(out.Claimed) >= r.Want)
	if r.Want > 0 && !out.LeftDue {
		q.caughtUp.Store(out.Now.UnixMilli())
	}
}

// Now is the clock of Redis: the only one that decides anything.
func (q *Queue) Now(ctx context.Context) (time.Time, error) {
	return store.Now(ctx, q.rdb)
}

// Lanes lists the lanes that have been used. The version rises whenever the list changes; cycle and heartbeat return
// it.
func (q *Queue) Lanes(ctx context.Context) (lanes []Lane, version int64, err error) {
	pipe := q.rdb.Pipeline()
	v := pipe.HGet(ctx, q.keys.Meta, "lanes") // before the list: a lane added in between only makes us read again
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

// Strict reports whether what too few replicas have is not answered; see [store.Durability].
func (q *Queue) Strict() bool { return store.IsStrict(q.rdb) }
