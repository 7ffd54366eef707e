package producer

import (
	"math"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// defaultBacklog is how many slots of a schedule are pushed, at most, while the first of them still waits for a handler.
// Otherwise a frequent schedule that no instance handles would fill Redis.
const defaultBacklog = 50_000

// centuries is longer than any schedule waits.
const centuries = math.MaxInt64 / 2 * time.Nanosecond

// probe returns the bound of a push: the slot that was due so many slots ago. Only Redis knows whether that slot waits, and
// leaders change with each rollout. So the leader names the slot, and the script that pushes looks.
func (e *entry) probe(now time.Time, bound int) queue.Probe {
	newest := e.upTo(now)
	if newest.IsZero() {
		return queue.Probe{}
	}
	gap := e.grid.Next(newest).Sub(newest)
	if e.last.Runs < int64(bound) || gap <= 0 {
		return queue.Probe{} // there are not that many slots yet
	}
	span := centuries
	if gap < centuries/time.Duration(bound) {
		span = time.Duration(bound) * gap
	}
	for e.grid.Count(newest.Add(-span), newest) < int64(bound) { // slots come in bursts: the gap varies
		if span *= 2; span > centuries {
			return queue.Probe{}
		}
	}
	slot := e.upTo(newest.Add(-span))
	if slot.IsZero() {
		return queue.Probe{}
	}
	return queue.Probe{Bound: bound, ID: task.SlotID(e.s.Name, slot), Due: e.s.JitterFor(e.s.Name, slot)}
}

// crowd takes in whether the backlog kept a step from pushing.
func (t *term) crowd(e *entry, s *queue.Step) {
	crowded := len(s.Push) > 0 && s.Dropped > 0
	switch {
	case crowded && !e.crowded:
		t.log.Warn().Str("schedule", e.s.Name).Int("slots", t.cfg.Backlog).Msg("too many slots wait, and new ones are skipped: check that an instance handles this type")
	case !crowded && e.crowded && len(s.Push) > 0:
		t.log.Info().Str("schedule", e.s.Name).Msg("the schedule gets its slots again")
	default:
		return
	}
	e.crowded = crowded
}
