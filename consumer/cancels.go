package consumer

import (
	"sync"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// cancels carries requests to cancel runs from the session's goroutines to the loop. The heartbeat adds requests between
// renewals of the lease, so add never waits for the loop.
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

// cancelRuns cancels the runs that the new requests name. A request that comes while a call is under way may name a task
// that this call claims, so cancelRuns keeps it until the answer.
func (c *Consumer) cancelRuns() {
	for r := range c.cancels.take() {
		c.cancelRun(r)
		if c.calling {
			c.asked = append(c.asked, r)
		}
	}
}

// cancelAgain applies the requests that came during a call to the runs that its answer began.
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
		// A slot on time does not replace a run that is behind; see lib_cancel.lua.
		spared := r.Reason == "replaced" && id != r.Task && run.task.Overlap == task.Behind
		if !spared && r.Covers(id, run.task.Key, run.task.Fence) {
			run.end(cause)
		}
	}
}

// refused returns new settlements for runs that failed or were handed back just when a caller asked to cancel them. The
// script has seen the request and refuses to make such a task due again, so the task is settled as cancelled.
func (c *Consumer) refused(r *queue.CycleReply) (list []queue.Settlement) {
	for _, i := range r.Refused {
		was := &c.settled[i]
		s := queue.Settlement{ID: was.ID, Fence: was.Fence}
		if was.Task != nil { // nil: the record could not be read
			c.finish(&s, was.Task, history.Cancelled, 0, ErrCancelled, "")
		}
		e := c.log.Info().AnErr("cause", ErrCancelled)
		if was.Task != nil {
			e = e.Func(ofRun(was.Task))
		} else {
			e = e.Str("task", was.ID)
		}
		e.Msg("run cancelled")
		list = append(list, s)
	}
	return list
}
