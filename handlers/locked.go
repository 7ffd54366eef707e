package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/lock"
	"github.com/onbeat/onbeat/task"
)

// LockName is the same lock for every task, for [Locked].
func LockName(name string) func(*task.Task) string { return func(*task.Task) string { return name } }

// Locked runs the handler under a lock, whose name may depend on the task; see [lock.Locker] for what makes one. The
// handler's context ends when the lock is lost, with [lock.ErrLost] as its cause, and holds the lock for
// [lock.FromContext], with its fencing token.
//
// If somebody else has the lock, the handler does not run. The run fails with a [*lock.HeldError] that is tried
// [RetryAfter] what the holder's lease has left (at least a second), so a worker is not kept waiting. That costs the task
// an attempt, like every failed run: give it as many as the holder may need. If Redis does not answer, the run fails
// with [lock.ErrUnreachable] and is tried after the task's backoff. A name that is none makes the task [Dead].
//
// What the handler returns stands, even if the lock was lost meanwhile: only whoever it wrote to can tell, by the fence.
//
// It is for what others do too, outside of this dispatcher: a crontab with `onbeat lock run`, another program. Tasks of
// one dispatcher that must not run at once take [task.Key], whose waiting costs no attempt.
func Locked(l *lock.Locker, name func(*task.Task) string) Middleware {
	return func(next TaskHandler) TaskHandler {
		return Wrap(next, func(ctx context.Context, t *task.Task) error {
			held, err := l.TryAcquire(ctx, name(t))
			if err != nil {
				return notLocked(err)
			}
			// If it fails the lock is free within a TTL, and there is nothing that a retry of the task would mend.
			defer func() { _ = held.Release(ctx) }()
			return next.Handle(held.Context(), t)
		})
	}
}

func notLocked(err error) error {
	var held *lock.HeldError
	switch {
	case errors.As(err, &held):
		return RetryAfter(err, max(held.For, time.Second))
	case errors.Is(err, task.ErrInvalid):
		return Dead(err)
	}
	return err
}
