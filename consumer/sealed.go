package consumer

import (
	"errors"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// keyWait is how long a task stays due, untouched, that came to an instance without its key.
const keyWait = time.Minute

// unopened settles a claimed task whose payload this instance cannot decrypt. Without the key it is due again in a minute, for an
// instance that has the key, and the attempt does not count. A payload that does not open with its key never will: the task is
// dead.
func (c *Consumer) unopened(t *task.Task, err error) {
	s := queue.Settlement{ID: t.ID, Fence: t.Fence, Outcome: queue.Moved, Lane: queue.LaneOf(t), Delay: keyWait}
	if errors.Is(err, task.ErrNoKey) {
		c.log.Error().Err(err).Str("task", t.ID).Str("type", t.Type).Msg("cannot decrypt a payload: leaving the task to an instance that has the key")
		c.settled = append(c.settled, s)
		return
	}
	failed := queue.Fail(t, task.Failure{At: time.Now().UTC(), Attempt: t.Attempt, Instance: t.Instance, Error: err.Error()}, true)
	s.Outcome, s.Record, s.Note = queue.Died, failed.Record, c.notes.Run(t, history.Dead, 0, err.Error(), "")
	c.log.Warn().Str("task", t.ID).Str("type", t.Type).Int("attempt", t.Attempt).Err(err).Msg("task is dead")
	c.settled = append(c.settled, s)
}
