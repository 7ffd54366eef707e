package consumer

import (
	"sync"

	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// cancels are requests to cancel runs, on their way from the stay's goroutines to the loop. The lease waits for whoever
// adds one, so none waits for the loop.
type cancels struct {
	bell instance.Bell
	mu   sync.Mutex
	set  map[instance.Cancel]struct{}
}

func newCancels() *cancels {
	return &cancels{bell: instance.NewBell(), set: map[instance.Cancel]struct{}{}}
}

func (c *cancels) add(r instance.Cancel) {
	c.mu.Lock()
	c.set[r] = struct{}{}
	c.mu.Unlock()
	c.bell.Ring()
}

func (c *cancels) take() map[instance.Cancel]struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	set := c.set
	c.set = map[instance.Cancel]struct{}{}
	return set
}

// cancelRuns cancels what was asked for. A request that comes while a call is under way may be about what that call
// claims: it is kept for its answer.
func (c *Consumer) cancelRuns() {
	for r := range c.cancels.take() {
		c.cancelRun(r)
		if c.calling {
			c.asked = append(c.asked, r)
		}
	}
}

// cancelAgain is for what an answer has brought.
func (c *Consumer) cancelAgain() {
	for _, r := range c.asked {
		c.cancelRun(r)
	}
	c.asked = c.asked[:0]
}

func (c *Consumer) cancelRun(r instance.Cancel) {
	cause := ErrCancelled
	if r.Reason == "replaced" {
		cause = ErrReplaced
	}
	for id, run := range c.inflight {
		// What runs behind is not replaced by a slot on time; see lib_cancel.lua.
		spared := r.Reason == "replaced" && id != r.Task && run.task.Conflict == task.Behind
		if !spared && r.Covers(id, run.task.Key, run.task.Fence) {
			run.end(cause)
		}
	}
}

// refused are new settlements for runs that failed, or were handed back, at the moment in which somebody asked to cancel
// them: Redis has seen the request, and does not let them run again.
func (c *Consumer) refused(r *queue.CycleReply) (list []queue.Settlement) {
	for _, i := range r.Refused {
		was := &c.settled[i]
		s := queue.Settlement{ID: was.ID, Fence: was.Fence}
		if was.Task != nil { // its record could be read
			c.finish(&s, was.Task, history.Cancelled, 0, ErrCancelled)
		}
		c.log.Info().Str("task", was.ID).AnErr("cause", ErrCancelled).Msg("run cancelled")
		list = append(list, s)
	}
	return list
}
