package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// runContext is the context of one run. It ends with the session, with the task's timeout, or when the run is cancelled, and
// always with a cause.
//
// A timer and a place in the session's list of children cost time. So the real context is made when the handler first asks
// for it, by Done or Value. Many short handlers never ask.
type runContext struct {
	parent   context.Context
	task     *task.Task
	deadline time.Time

	mu     sync.Mutex
	cause  error           // why the run was cancelled; it may be set before made is
	made   context.Context // the real context; nil until the handler asks for it
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
}

// Deadline returns when the run times out, by the local clock.
func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done returns a channel that is closed when the run must end.
func (c *runContext) Done() <-chan struct{} { return c.make().Done() }

// Err returns nil while the run may go on.
func (c *runContext) Err() error {
	c.mu.Lock()
	made, cause := c.made, c.cause
	c.mu.Unlock()
	switch {
	case made != nil:
		return made.Err()
	case c.parent.Err() != nil || cause != nil:
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return context.DeadlineExceeded
	}
	return nil
}

// Value returns the task for handlers.FromContext, and the parent's value for handlers.Output. A context that the
// handler derives from this one asks for a private key of package context: it finds the real context, and so the cause.
func (c *runContext) Value(key any) any {
	switch key {
	case handlers.TaskKey:
		return c.task
	case handlers.OutputKey:
		return c.parent.Value(key)
	}
	return c.make().Value(key)
}

// make returns the real context, and makes it the first time.
func (c *runContext) make() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		var base context.Context
		base, c.cancel = context.WithCancelCause(c.parent)
		c.made, c.stop = context.WithDeadlineCause(base, c.deadline, ErrTimeout)
		if c.cause != nil {
			c.cancel(c.cause)
		}
	}
	return c.made
}

// end cancels the run with a cause. The first cause stays.
func (c *runContext) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = cause
	}
	if c.made != nil {
		c.cancel(cause)
	}
}

// over frees the real context once the run has ended. A handler that kept the context finds it cancelled.
func (c *runContext) over() {
	c.end(context.Canceled)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
}

// why returns the cause with which the context ended, or nil if it has not ended.
func (c *runContext) why() error {
	c.mu.Lock()
	made, cause := c.made, c.cause
	c.mu.Unlock()
	switch {
	case made != nil:
		return context.Cause(made)
	case c.parent.Err() != nil:
		return context.Cause(c.parent)
	case cause != nil:
		return cause
	case !time.Now().Before(c.deadline):
		return ErrTimeout
	}
	return nil
}
