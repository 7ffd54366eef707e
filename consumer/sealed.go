package consumer

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// keyWait is how long a task stays due, untouched, that came to an instance which cannot decrypt it.
const keyWait = time.Minute

// keyNoted is how often an instance notes an event about that.
const keyNoted = 10 * time.Minute

// unopened settles a claimed task whose payload this instance cannot decrypt: it is due again in a minute, for an instance that can, and
// the attempt does not count. The key may be missing here, or another one may have its ID; both are mended by a config, and a task that
// was changed in Redis looks just like the second. The log names one such task a minute, not all of them.
func (c *Consumer) unopened(t *task.Task, err error) {
	c.settled = append(c.settled, queue.Settlement{ID: t.ID, Fence: t.Fence, Outcome: queue.Moved, Lane: queue.LaneOf(t), Delay: keyWait})
	now := time.Now()
	if now.Sub(c.sealedNoted) >= keyNoted {
		c.sealedNoted = now
		key, id, typ := "", t.ID, t.Type
		if t.Sealed != nil {
			key = t.Sealed.Key
		}
		c.noting.Go(func() { // a call on its own: the loop does not wait for it
			ctx, done := context.WithTimeout(c.session.Context(), keyWait)
			defer done()
			_ = c.q.Tell(ctx, "cannot decrypt", "instance", c.session.ID, "release", c.session.Release, "key", key, "task", id, "type", typ)
		})
	}
	if now.Sub(c.sealedTold) >= keyWait {
		c.sealedTold = now
		c.log.Error().Func(ofRun(t)).Err(err).Msg("cannot decrypt a payload: leaving the task to an instance that has the key")
	}
}
