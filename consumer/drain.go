package consumer

import (
	"time"

	"github.com/onbeat/onbeat/queue"
)

// drain ends the stay's work: what runs may finish, then is cancelled, then is handed back. If the lease is lost
// meanwhile nothing is settled.
func (c *Consumer) drain() {
	ended := c.stay.Context().Done()
	grace := time.NewTimer(c.cfg.Drain)
	defer grace.Stop()
	var abandoned, retry <-chan time.Time
	failures := 0
	if n := len(c.inflight); n > 0 && c.stay.Context().Err() == nil {
		c.log.Info().Int("running", n).Dur("drain", c.cfg.Drain).Msg("finishing what runs")
	}
	for len(c.inflight) > 0 || len(c.settled) > 0 && ended != nil {
		if len(c.settled) > 0 && retry == nil && ended != nil {
			if _, err := c.cycle(0); err != nil {
				failures++
				retry = time.After(c.troubled(err, failures))
			} else {
				failures = 0
			}
			continue
		}
		select {
		case r := <-c.results:
			c.ended(r)
			c.gather()
		case <-grace.C:
			for _, r := range c.inflight {
				r.cancel(ErrDrained)
			}
			abandoned = time.After(abandon)
		case <-abandoned:
			c.abandon()
		case r := <-c.cancels:
			c.cancelRuns(r)
		case <-retry:
			retry = nil
		case <-ended: // the runs hang on this context too: they are cancelled
			ended, retry, c.settled = nil, nil, nil
			abandoned = time.After(abandon)
		}
	}
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
		var s queue.Settlement
		s.ID, s.Fence = id, r.task.Fence
		handBack(&s, r.task)
		c.settled = append(c.settled, s)
	}
}
