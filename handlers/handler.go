package handlers

import (
	"context"

	"github.com/onbeat/onbeat/task"
)

// A TaskHandler does the work of one task. It may be called more than once for the same task, also after it succeeded
// (delivery is at least once), and by several goroutines at once.
//
// Nil means done. Any other error is a failed run, tried again after the task's backoff unless it says otherwise: see
// [Dead] and [RetryAfter]. When ctx ends, the handler must stop and return; [context.Cause] says why it ended. The
// task and its payload are the handler's until it returns, and not after.
type TaskHandler interface {
	Handle(ctx context.Context, t *task.Task) error
}

// Func lets a plain function be a [TaskHandler].
type Func func(ctx context.Context, t *task.Task) error

// Handle calls f.
func (f Func) Handle(ctx context.Context, t *task.Task) error { return f(ctx, t) }

// PayloadChecker is an optional interface of a [TaskHandler]: it refuses a payload that lacks what the handler needs,
// with a [*task.FieldError], at the edge (a config file, an enqueue) instead of at the first run.
type PayloadChecker interface {
	CheckPayload(payload []byte) error
}

// Wrap returns a handler that runs fn in place of inner and still answers [As] for the optional interfaces of inner.
// It is how a [Middleware] hides nothing.
func Wrap(inner TaskHandler, fn Func) TaskHandler { return &wrapped{Func: fn, inner: inner} }

type wrapped struct {
	Func
	inner TaskHandler
}

func (w *wrapped) Unwrap() TaskHandler { return w.inner }

// As finds the first handler that implements T among h and what it wraps (by Unwrap() TaskHandler, as [Wrap] does).
//
//	if s, ok := handlers.As[handlers.Scheduled](h); ok { ... }
//
// A middleware that returns a bare [Func] ends the search: what is inside of it is not found.
func As[T any](h TaskHandler) (T, bool) {
	for h != nil {
		if t, ok := h.(T); ok {
			return t, true
		}
		u, ok := h.(interface{ Unwrap() TaskHandler })
		if !ok {
			break
		}
		h = u.Unwrap()
	}
	var none T
	return none, false
}

type taskKey struct{}

// TaskKey is the key under which a context carries its task to [FromContext], for who makes contexts of their own.
// Everybody else uses [NewContext].
var TaskKey any = taskKey{}

// NewContext returns a context that carries t to [FromContext].
func NewContext(ctx context.Context, t *task.Task) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

// FromContext is the task being run, or nil outside of a run.
func FromContext(ctx context.Context) *task.Task {
	t, _ := ctx.Value(taskKey{}).(*task.Task)
	return t
}
