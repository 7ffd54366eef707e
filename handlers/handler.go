package handlers

import (
	"context"

	"github.com/onbeat/onbeat/task"
)

// A TaskHandler does the work of one task. It may be called more than once for the same task, even after it succeeded
// (delivery is at least once), and from several goroutines at once.
//
// Nil means done. Any other error is a failed run, which is retried after the task's backoff unless the error says
// otherwise: see [Dead] and [RetryAfter]. When ctx ends, the handler must stop and return; [context.Cause] says why it
// ended. The handler may use the task and its payload until it returns, and not after.
type TaskHandler interface {
	Handle(ctx context.Context, t *task.Task) error
}

// Func makes a plain function a [TaskHandler].
type Func func(ctx context.Context, t *task.Task) error

// Handle calls f.
func (f Func) Handle(ctx context.Context, t *task.Task) error { return f(ctx, t) }

// PayloadChecker is an optional interface of a [TaskHandler]. It refuses a payload that lacks what the handler needs, with
// a [*task.FieldError], at the edge (a config file, an enqueue) and not at the first run.
type PayloadChecker interface {
	CheckPayload(payload []byte) error
}

// Wrap returns a handler that runs fn in place of inner, and through which [As] still finds the optional interfaces of
// inner. A [Middleware] that uses it hides nothing.
func Wrap(inner TaskHandler, fn Func) TaskHandler { return &wrapped{Func: fn, inner: inner} }

type wrapped struct {
	Func
	inner TaskHandler
}

func (w *wrapped) Unwrap() TaskHandler { return w.inner }

// As finds the first handler that implements T among h and the handlers it wraps (by Unwrap() TaskHandler, as [Wrap] does).
//
//	if s, ok := handlers.As[handlers.Scheduled](h); ok { ... }
//
// A middleware that returns a bare [Func] ends the search: As does not find the handlers inside of it.
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

// TaskKey is the key under which a context carries its task to [FromContext], for a caller that makes its own context type.
// Other callers use [NewContext].
var TaskKey any = taskKey{}

// NewContext returns a context that carries t to [FromContext].
func NewContext(ctx context.Context, t *task.Task) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

// FromContext returns the task that runs, or nil outside of a run.
func FromContext(ctx context.Context) *task.Task {
	t, _ := ctx.Value(taskKey{}).(*task.Task)
	return t
}

type namespaceKey struct{}

// WithNamespace returns a context that carries a dispatcher's namespace to [Namespace].
func WithNamespace(ctx context.Context, namespace string) context.Context {
	return context.WithValue(ctx, namespaceKey{}, namespace)
}

// Namespace returns the namespace of the dispatcher that runs the task, or "" outside of a run. A task's ID is unique within it.
func Namespace(ctx context.Context) string {
	name, _ := ctx.Value(namespaceKey{}).(string)
	return name
}
