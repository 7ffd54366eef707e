package handlers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/task"
)

// Middleware wraps a handler in another, as in net/http. Return [Wrap] of the inner handler to keep its optional interfaces
// visible.
type Middleware func(TaskHandler) TaskHandler

// Recover turns a panic into a [*PanicError], so that the panic is a failed run and does not end the process. Put Recover
// inside of [Log], so that Log sees the error.
//
// It cannot stop [runtime.Goexit]: no deferred function can. A caller that must learn of every end uses [Do].
func Recover() Middleware {
	return func(next TaskHandler) TaskHandler {
		return Wrap(next, func(ctx context.Context, t *task.Task) (err error) {
			defer func() {
				if v := recover(); v != nil { // panic(nil) arrives as *runtime.PanicNilError
					err = newPanicError(v)
				}
			}()
			return next.Handle(ctx, t)
		})
	}
}

// Do runs h and calls done exactly once with the outcome, on the same goroutine, whatever h does. If h panics, the outcome
// is a [*PanicError]. If h ends the goroutine, it is [ErrGoexit]: done is then called while the goroutine ends, and Do does
// not return.
func Do(ctx context.Context, h TaskHandler, t *task.Task, done func(error)) {
	err := ErrGoexit
	defer func() {
		if v := recover(); v != nil {
			err = newPanicError(v)
		}
		done(err)
	}()
	err = h.Handle(ctx, t)
}

// Timeout ends the context of each run after d; zero or less means no limit. The cause matches [context.DeadlineExceeded].
// A handler that ignores its context is not stopped.
//
// This is the limit of the program. The consumer applies the limit of the task ([task.Timeout]).
func Timeout(d time.Duration) Middleware {
	cause := fmt.Errorf("run took longer than %s: %w", d, context.DeadlineExceeded)
	return func(next TaskHandler) TaskHandler {
		if d <= 0 {
			return next
		}
		return Wrap(next, func(ctx context.Context, t *task.Task) error {
			ctx, cancel := context.WithTimeoutCause(ctx, d, cause)
			defer cancel()
			return next.Handle(ctx, t)
		})
	}
}

// Log logs how each run ended: a failure at warn, with the attempt and what follows from the error, a success at debug. It
// never logs the payload, and hides what is secret of it in the error.
func Log(log zerolog.Logger) Middleware {
	return func(next TaskHandler) TaskHandler {
		return Wrap(next, func(ctx context.Context, t *task.Task) error {
			start := time.Now()
			err := next.Handle(ctx, t)
			if err == nil {
				logRun(log.Debug(), t, start).Msg("task done")
				return nil
			}
			e := logRun(log.Warn(), t, start).Err(Hide(t, err))
			if d, ok := RetryDelay(err); IsDead(err) {
				e = e.Bool("dead", true)
			} else if ok {
				e = e.Dur("retry_after", d)
			}
			if p, ok := errors.AsType[*PanicError](err); ok {
				e = e.Bytes("stack", p.Stack)
			}
			e.Msg("task failed")
			return err
		})
	}
}

// slotTime is RFC 3339 with milliseconds. Without them, the ten slots of one second look the same in the log.
const slotTime = "2006-01-02T15:04:05.000Z07:00"

func logRun(e *zerolog.Event, t *task.Task, start time.Time) *zerolog.Event {
	if e == nil {
		return nil
	}
	e = e.Str("task", t.ID).Str("type", t.Type)
	if t.Schedule != "" {
		e = e.Str("schedule", t.Schedule).Str("slot", t.Slot.UTC().Format(slotTime))
	}
	return e.Int("attempt", t.Attempt).Dur("took", time.Since(start))
}
