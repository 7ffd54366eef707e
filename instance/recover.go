package instance

import (
	"context"
	"errors"
	"fmt"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// lostText is the error a task gets when whoever ran it was declared dead.
const lostText = "the instance that ran it was lost"

// recover gives the tasks of a dead generation back: due again with the attempt counted, or dead if that was the last.
// Several instances may do so at once; each task moves once.
func (m *Manager) recover(ctx context.Context, gen int64) error {
	claims, _, err := m.q.Held(ctx, gen, "")
	if err != nil {
		return err
	}
	list := make([]queue.Recovery, 0, len(claims))
	died := 0
	for _, c := range claims {
		if c.Err != nil { // unreadable here: leave it to a release that can read it
			m.log.Warn().Err(c.Err).Str("task", c.Task.ID).Msg("cannot take back a task")
			continue
		}
		r := recovery(c)
		if r.Dead {
			died++
		}
		list = append(list, r)
	}
	moved, left, err := m.q.Recover(ctx, gen, list)
	if errors.Is(err, queue.ErrAlive) { // somebody else was faster
		return nil
	}
	if err != nil {
		return err
	}
	if moved > 0 || left > 0 {
		m.log.Info().Int64("generation", gen).Int("tasks", moved).Int("dead", died).Int("left", left).
			Msg("took back the tasks of a lost instance")
	}
	return nil
}

func recovery(c queue.Claim) queue.Recovery {
	t := *c.Task
	claim := c
	t.Fail(task.Failure{At: t.Claimed, Attempt: t.Attempt, Error: lostText})
	// A run that had begun is not skipped for overlapping itself: it waits for its key like any other.
	t.Conflict = task.Wait
	r := queue.Recovery{Claim: claim, Lane: queue.LaneOf(&t), Dead: t.Attempts >= t.AttemptsAllowed(), Record: queue.Rewrite(&t)}
	if t.Schedule != "" {
		r.Note = fmt.Sprintf("%s lost %d %d", t.ID, t.Attempt, t.Claimed.UnixMilli())
	}
	return r
}
