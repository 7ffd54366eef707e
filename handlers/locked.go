package handlers

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/lock"
	"github.com/onbeat/onbeat/task"
)

// LockName returns the same lock name for every task, for [Locked].
func LockName(name string) func(*task.Task) string { return func(*task.Task) string { return name } }

// Locked runs the handler under a lock, whose name may depend on the task; see [lock.Locker] for how to make a Locker. If
// the lock is lost, the handler's context ends with [lock.ErrLost] as its cause. [lock.FromContext] returns the lock, with
// its fencing token.
//
// If another holder has the lock, the handler does not run. The run fails with a [*lock.HeldError], and is retried after
// the rest of the holder's lease (at least a second; see [RetryAfter]), so that it does not keep a worker waiting. That
// costs the task an attempt, like every failed run: give the task as many attempts as the holder may need. If Redis does
// not answer, the run fails with [lock.ErrUnreachable] and is retried after the task's backoff. An invalid name makes the
// task [Dead].
//
// The result of the handler counts, even if the lock was lost meanwhile: only the resource that the handler wrote to can
// detect that, by the fence.
//
// Use Locked for work that is also done outside of this dispatcher, by a crontab with `onbeat lock run` or by another
// program. If only tasks of one dispatcher must not run at once, use [task.Key]: waiting for a key costs no attempt.
func Locked(l *lock.Locker, name func(*task.Task) string) Middleware {
	return func(next TaskHandler) TaskHandler {
		return Wrap(next, func(ctx context.Context, t *task.Task) error {
			held, err := l.TryAcquire(ctx, name(t))
			if err != nil {
				return notLocked(err)
			}
			// If it fails, the lock is free within a TTL, and a retry of the task would not help.
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
