package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// adopt reads the claims of this generation from Redis and takes up those that the consumer does not know:
//   - A run that this instance settled is settled again: Redis has lost the settlement since.
//   - A task that a call with a lost reply claimed begins now. If no worker is free, or the instance may begin nothing,
//     the task is handed back.
//   - A task that runs here under an older fence keeps running: its settlement will carry the new fence.
func (c *Consumer) adopt(ctx context.Context, reply *queue.CycleReply) error {
	ctx, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	var claims []queue.Claim
	if err := c.meanwhile(func() (err error) {
		claims, err = store.Within(ctx, func() ([]queue.Claim, error) {
			claims, _, err := c.q.Claims(ctx, c.session.Gen, c.session.ID)
			return claims, err
		})
		return err
	}); err != nil {
		return err
	}
	ended := make(map[string]bool, len(c.settled))
	for i := range c.settled {
		ended[c.settled[i].ID] = true
	}
	n := 0
	settled := c.lately.by()
	for _, claim := range claims {
		t := claim.Task
		if r := c.inflight[t.ID]; r != nil {
			if t.Fence != r.task.Fence {
				r.again = t.Fence // a call with a lost reply claimed the task again
			}
			continue
		}
		if ended[t.ID] { // the next call settles it
			continue
		}
		n++
		before, ok := settled[settledKey{t.ID, t.Fence}]
		switch {
		case ok:
			c.keyed = c.keyed || t.Key != ""
			before.Tried = true // so that reportVoid does not report it
			c.settled = append(c.settled, before)
		case claim.Err != nil:
			c.malformed(queue.Malformed{ID: t.ID, Fence: t.Fence, Record: claim.Record, Err: claim.Err})
		case c.draining || !reply.MayClaim || !c.mayBegin(t.Type):
			c.handBack(t, false)
		default:
			t.Claimed = reply.Now // the run begins now, which may be long after the lost call
			c.accept(t)
		}
	}
	c.doubt = false
	if n > 0 {
		c.log.Info().Int("tasks", n).Msg("took up tasks that redis lists as claimed here: a reply or the last writes of redis were lost")
	}
	return nil
}

// malformed settles a claimed task whose record this release cannot read. A record of a newer format is due again in a
// minute, for a newer release. A damaged record makes the task dead.
func (c *Consumer) malformed(m queue.Malformed) {
	c.log.Error().Err(m.Err).Str("task", m.ID).Str("type", m.Lane.Type).Msg("unreadable task record")
	s := queue.Settlement{ID: m.ID, Fence: m.Fence, Outcome: queue.Died, Record: []byte(m.Record)}
	s.Note = c.notes.Unread(&task.Task{ID: m.ID, Type: m.Lane.Type, Queue: m.Lane.Queue})
	if newer := m.Record != "" && m.Record[0] > '2' && m.Record[0] <= '9'; newer {
		if m.Lane == (queue.Lane{}) {
			return // only the record says which lane it came from: the claim stays until a newer release recovers the task
		}
		s = queue.Settlement{ID: m.ID, Fence: m.Fence, Outcome: queue.Moved, Lane: m.Lane, Delay: time.Minute}
	}
	c.settled = append(c.settled, s)
}

// troubled handles a failed call and returns how long to wait before the next one. The call's outcome is unknown, so the
// claims are in doubt from now on.
func (c *Consumer) troubled(err error, failures int) time.Duration {
	c.doubt = true
	switch {
	case errors.Is(err, queue.ErrFenced):
		c.session.Doubt()
	case errors.Is(err, store.ErrWrongType):
		c.session.Mend(err)
	case errors.Is(err, queue.ErrStale), c.session.Context().Err() != nil: // expected after a lost call, or at the end of the session
	case failures == 1:
		c.log.Warn().Err(err).Msg("cannot claim or settle tasks: trying again")
	}
	d := min(longestPause, 10*time.Millisecond<<min(failures, 10))
	return d/2 + rand.N(d/2+1)
}
