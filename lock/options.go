package lock

import (
	"time"

	"github.com/onbeat/onbeat/task"
)

// Options describe a lock. The zero value is ready to use. All callers that compete for a lock should use the same options.
type Options struct {
	// Namespace separates the locks of programs that share a Redis. Default: none, which is a namespace too.
	Namespace string
	// TTL is how long Redis keeps the lock after the holder's last heartbeat, and so how long others wait after a holder
	// dies. Default 10s, 500ms to 1h. The holder sends a heartbeat every quarter of it; the context ends a tenth of it
	// early.
	TTL time.Duration
	// Wait is how long Acquire waits at most; then it returns a [*HeldError]. Default: until its context ends.
	Wait time.Duration
	// AtMostFor ends the context, with [ErrAtMost], and the heartbeat this long after the lock was taken. A holder that
	// does not release the lock then loses it within a TTL. Default: no bound.
	AtMostFor time.Duration
	// AtLeastFor keeps the lock from all other callers until this long after it was taken, by the clock of Redis, however
	// early it is released and even if its holder dies. At most 24h, and at most AtMostFor if that is set. Default 0.
	AtLeastFor time.Duration
}

// Validate refuses, with a [*task.FieldError], options that could not work. Unset fields are valid.
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
		return &task.FieldError{Field: "at_least_for", Value: o.AtLeastFor.String(), Reason: "longer than at_most_for of " + o.AtMostFor.String(),
			Hint: "give at most that"}
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.TTL == 0 {
		o.TTL = 10 * time.Second
	}
	return o
}

// heartbeat returns the time between two heartbeats: three may be lost before the lease is.
func (o Options) heartbeat() time.Duration { return o.TTL / 4 }

// trusted returns how long after its request a lease is trusted. The missing tenth allows for the clocks of Redis and of
// this process, which do not run equally fast. (The algorithm of
// redis.io/docs/latest/develop/clients/patterns/distributed-locks takes a hundredth and 2 ms.)
func (o Options) trusted() time.Duration { return o.TTL - o.TTL/10 }

// first returns how long a lock is taken for at first.
func (o Options) first() time.Duration { return max(o.TTL, o.AtLeastFor) }

// ms rounds up: no lease is shorter in Redis than requested.
func ms(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
