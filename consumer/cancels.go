package consumer

import (
	"sync"

	"github.com/onbeat/onbeat/instance"
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

// cancelled rings when there are requests. Not while a call is under way: they may be about what it claims, of which
// nothing is known before its answer.
func (c *Consumer) cancelled() instance.Bell {
	if c.calling {
		return nil
	}
	return c.cancels.bell
}

// cancelRuns cancels what was asked for.
func (c *Consumer) cancelRuns() {
	for r := range c.cancels.take() {
		cause := ErrCancelled
		if r.Reason == "replaced" {
			cause = ErrReplaced
		}
		for id, run := range c.inflight {
			if r.Covers(id, run.task.Key, run.task.Fence) {
				run.end(cause)
			}
		}
	}
}
