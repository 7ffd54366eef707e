package consumer

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// settleTimeout is how long the consumer offers its last settlements to a Redis that answers heartbeats but does not
// accept settlements. If retrying cannot help, it gives them up as soon as the time to drain is over.
const settleTimeout = 10 * time.Second

// strictTimeout is how long a leaving instance waits, under strict durability, until enough replicas have its last
// settlements. Then it settles without waiting for replicas: unsettled runs would surely run again.
const strictTimeout = settleTimeout / 2

// drain ends the session's work. Runs may finish for as long as [Config.Drain]; then drain cancels them, and hands back the
// tasks whose handlers do not return. If the lease is lost meanwhile, drain settles nothing more. The instance that
// recovers this generation deals with every run that drain cannot settle in time.
func (c *Consumer) drain() {
	ended := c.session.Context().Done()
	grace := time.NewTimer(c.cfg.Drain)
	defer grace.Stop()
	var abandoned, retry, unpaid, relax <-chan time.Time
	var failures int
	var graceOver, lasting bool // lasting: the last call failed in a way that retrying does not cure
	if n := len(c.inflight); n > 0 && c.session.Context().Err() == nil {
		c.log.Info().Int("running", n).Dur("drain", c.cfg.Drain).Msg("finishing running tasks")
	}
	c.draining = true
	for _, r := range c.inflight {
		if r.task.Type == task.BulkType { // it may last for hours, and goes on elsewhere from the page that it is at
			r.end(ErrDrained)
		}
	}
	c.session.Watch("")
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
		c.tally()
		if owes() && !c.calling && retry == nil {
			c.send(room{})
		}
		if len(c.inflight) == 0 && unpaid == nil {
			unpaid, relax = time.After(settleTimeout), time.After(strictTimeout)
		}
		select {
		case a := <-c.answers:
			_, err := c.answered(a)
			if lasting = err != nil && !store.Retryable(err) && !errors.Is(err, task.ErrFull); err != nil {
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
		case <-ended: // the contexts of the runs are children of this one: they are cancelled too
			ended, retry = nil, nil
			abandoned = time.After(abandon)
		}
		if graceOver && lasting && len(c.inflight) == 0 && ended != nil {
			c.leaveUnsettled()
			return
		}
	}
}

// namedTasks is how many tasks one log line names.
const namedTasks = 10

// cutShort cancels the runs. Their tasks are handed back as the handlers return.
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

// leaveUnsettled gives up the settlements that Redis does not accept. Another instance recovers those tasks, and they
// run again.
func (c *Consumer) leaveUnsettled() {
	c.log.Error().Int("runs", len(c.settled)).Msg("cannot settle the last runs: leaving without their results")
	c.settled = nil // not [:0]: a call that is under way may still read the slice
}

// abandon hands back the tasks of handlers that do not return though their context ended. Such a handler goes on without
// a claim.
func (c *Consumer) abandon() {
	for _, r := range c.inflight {
		c.log.Error().Func(ofRun(r.task)).Msg("handler does not return after its context ended: giving up on it")
		c.leave(r)
		if c.session.Context().Err() != nil {
			continue
		}
		c.handBack(r.task, true)
		if r.again != 0 {
			c.settled[len(c.settled)-1].Fence = r.again
		}
	}
}

// handBack adds a settlement that makes a claimed task due again without counting the attempt. Begun says that its
// handler was called.
func (c *Consumer) handBack(t *task.Task, begun bool) {
	s := queue.Settlement{ID: t.ID, Fence: t.Fence}
	handBack(&s, t, begun)
	if begun {
		s.Note = c.notes.Run(t, history.Returned, 0, "", "")
	}
	c.keyed = c.keyed || t.Key != ""
	c.settled = append(c.settled, s)
}
