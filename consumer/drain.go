package consumer

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

// settleTimeout is how long Redis may refuse, or not answer, the last settlements while it answers heartbeats. What it
// refuses for good is given up when the time to drain is over.
const settleTimeout = 10 * time.Second

// strictTimeout is how long an instance that leaves waits, under strict durability, until enough replicas know how its last runs
// ended. After it they are settled as without: to leave them unsettled would surely have them run again.
const strictTimeout = settleTimeout / 2

// drain ends the stay's work: what runs may finish, then is cancelled, then is handed back. If the lease is lost
// meanwhile nothing is settled. What cannot be settled in time is left to whoever takes back what this instance ran.
func (c *Consumer) drain() {
	ended := c.stay.Context().Done()
	grace := time.NewTimer(c.cfg.Drain)
	defer grace.Stop()
	var abandoned, retry, unpaid, relax <-chan time.Time
	var failures int
	var graceOver, lasting bool // the last answer was an error that waiting does not end
	if n := len(c.inflight); n > 0 && c.stay.Context().Err() == nil {
		c.log.Info().Int("running", n).Dur("drain", c.cfg.Drain).Msg("finishing what runs")
	}
	c.draining = true
	c.stay.Watch("")
	hurry := c.cfg.Hurry
	timeIsUp := func() {
		if graceOver {
			return
		}
		graceOver = true
		c.cutShort()
		abandoned = time.After(abandon)
	}
	owes := func() bool { return ended != nil && (len(c.settled) > 0 || c.doubt || len(c.owed) > 0) }
	for len(c.inflight) > 0 || c.calling || owes() {
		if owes() && !c.calling && retry == nil {
			c.send(0)
		}
		if len(c.inflight) == 0 && unpaid == nil {
			unpaid, relax = time.After(settleTimeout), time.After(strictTimeout)
		}
		select {
		case a := <-c.answers:
			_, err := c.answered(a)
			if lasting = err != nil && !store.Retryable(err) && !errors.Is(err, store.ErrFull); err != nil {
				failures++
				retry = time.After(c.troubled(err, failures))
			} else {
				failures = 0
			}
		case r := <-c.results:
			c.ended(r)
			c.gather()
		case <-grace.C:
			timeIsUp()
		case <-hurry:
			hurry, c.relaxed = nil, true
			timeIsUp()
		case <-abandoned:
			c.abandon()
		case <-c.cancels.bell:
			c.cancelRuns()
		case <-retry:
			retry = nil
		case <-relax:
			c.relaxed = true
		case <-unpaid:
			c.leaveUnsettled()
			return
		case <-ended: // the runs hang on this context too: they are cancelled
			ended, retry = nil, nil
			abandoned = time.After(abandon)
		}
		if graceOver && lasting && len(c.inflight) == 0 && ended != nil {
			c.leaveUnsettled()
			return
		}
	}
}

// namedTasks is how many tasks a line of the log names.
const namedTasks = 10

// cutShort cancels the running tasks, to hand them back.
func (c *Consumer) cutShort() {
	if len(c.inflight) == 0 {
		return
	}
	ids := slices.Sorted(maps.Keys(c.inflight))
	c.log.Warn().Int("running", len(ids)).Strs("tasks", ids[:min(len(ids), namedTasks)]).Msg("handing back running tasks")
	for _, r := range c.inflight {
		r.end(ErrDrained)
	}
}

// leaveUnsettled gives up what Redis does not take: whoever takes back what this instance ran has it run again.
func (c *Consumer) leaveUnsettled() {
	c.log.Error().Int("runs", len(c.settled)).Msg("cannot settle the last runs: leaving without")
	c.settled = nil // a call that is under way may still be reading it
}

// abandon gives up on handlers that do not return though their context ended: the task is handed back, and what they
// still do is done without a claim.
func (c *Consumer) abandon() {
	for id, r := range c.inflight {
		c.log.Error().Str("task", id).Str("type", r.task.Type).Msg("handler does not return after its context ended: giving up on it")
		delete(c.inflight, id)
		if c.stay.Context().Err() != nil {
			continue
		}
		c.handBack(r.task, true)
		if r.again != 0 {
			c.settled[len(c.settled)-1].Fence = r.again
		}
	}
}

// handBack returns a task that was claimed, and is not run, or not to its end.
func (c *Consumer) handBack(t *task.Task, begun bool) {
	s := queue.Settlement{ID: t.ID, Fence: t.Fence}
	handBack(&s, t, begun)
	c.keyed = c.keyed || t.Key != ""
	c.settled = append(c.settled, s)
}
