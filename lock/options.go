package lock

import (
	"time"

	"github.com/onbeat/onbeat/task"
)

// Options describe a lock. The zero value is ready to use. All who compete for a lock should use the same.
type Options struct {
	// Namespace keeps apart the locks of programs that share a Redis. Default: none, which is a namespace too.
	Namespace string
	// TTL is how long Redis believes in a holder after its last heartbeat, and so how long others wait for one that died.
	// Default 10s, 500ms to 1h. A heartbeat goes out every quarter of it; the context ends a tenth of it early.
	TTL time.Duration
	// Wait is how long Acquire waits at most; then it returns a [*HeldError]. Default: until its context ends.
	Wait time.Duration
	// AtMostFor ends the context, with [ErrAtMost], and the heartbeat this long after the lock was taken. Who does not
	// release it then loses it within a TTL. Default: no bound.
	AtMostFor time.Duration
	// AtLeastFor keeps the lock from everybody until this long after it was taken, by the clock of Redis, however early
	// it was released and even if its holder died. At most 24h, and AtMostFor if that is set. Default 0.
	AtLeastFor time.Duration
}

// Validate refuses, with a [*task.FieldError], what could not work. Unset fields are fine.
func (o Options) Validate() error {
	if o.Namespace != "" {
		if err := task.CheckName("namespace", o.Namespace); err != nil {
			return err
		}
	}
	if o.TTL != 0 && (o.TTL < 500*time.Millisecond || o.TTL > time.Hour) {
		return &task.FieldError{Field: "ttl", Value: o.TTL.String(), Reason: "out of range", Hint: "500ms to 1h; the default is 10s"}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"wait", o.Wait}, {"at_most_for", o.AtMostFor}, {"at_least_for", o.AtLeastFor}} {
		if d.value < 0 {
			return &task.FieldError{Field: d.field, Value: d.value.String(), Reason: "negative", Hint: "leave it out for none"}
		}
	}
	switch {
	case o.AtLeastFor > 24*time.Hour:
		return &task.FieldError{Field: "at_least_for", Value: o.AtLeastFor.String(), Reason: "out of range", Hint: "at most 24h"}
	case o.AtMostFor > 0 && o.AtLeastFor > o.AtMostFor:
		return &task.FieldError{Field: "at_least_for", Value: o.AtLeastFor.String(), Reason: "longer than at_most_for, " + o.AtMostFor.String(),
			Hint: "at most as long"}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.TTL == 0 {
		o.TTL = 10 * time.Second
	}
	return o
}

// heartbeat is the time between two: three may be lost before the lease is.
func (o Options) heartbeat() time.Duration { return o.TTL / 4 }

// trusted is how long after asking a lease is believed. The tenth that is missing is for the clocks of Redis and of this
// process, which do not run equally fast. (The algorithm of redis.io/docs/latest/develop/clients/patterns/distributed-locks
// takes a hundredth and 2 ms.)
func (o Options) trusted() time.Duration { return o.TTL - o.TTL/10 }

// first is how long a lock is taken for.
func (o Options) first() time.Duration { return max(o.TTL, o.AtLeastFor) }

// ms rounds up: no lease is shorter in Redis than was asked for.
func ms(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
