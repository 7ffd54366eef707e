package consumer

import (
	"context"
	"sync"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// runContext is the context of one run: it ends with the stay, with the task's timeout, or when the run is cancelled,
// and always with a cause. What costs something, a timer and a place in the stay's list of children, is made when
// somebody first asks for it: many a short handler never does, and does not pay.
type runContext struct {
	parent   context.Context
	task     *task.Task
	deadline time.Time

	mu     sync.Mutex
	cause  error           // why it was cancelled, also before anybody asked
	made   context.Context // nil until somebody asks
	cancel context.CancelCauseFunc
	stop   context.CancelFunc
}

// Deadline is when the run times out.
func (c *runContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done is closed when the run is to end.
func (c *runContext) Done() <-chan struct{} { return c.make().Done() }

// Err is nil while the run may go on.
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

// Value has the task for handlers.FromContext. Contexts made from this one ask for a key of package context: they find
// the one that was made, and so its cause.
func (c *runContext) Value(key any) any {
	if key == handlers.TaskKey {
		return c.task
	}
	return c.make().Value(key)
}

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

// end cancels the run for a cause; the first counts.
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

// over frees what was made. A handler that kept the context finds it cancelled.
func (c *runContext) over() {
	c.end(context.Canceled)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
}

// why is why the run was to end, or nil.
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
