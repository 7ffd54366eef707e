package producer

import (
	"math"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// defaultBacklog is how many slots of a schedule are pushed, at most, while the first of them still waits for somebody who
// handles it: else a schedule that is due often, and that nobody handles, would fill Redis.
const defaultBacklog = 50_000

// probe is what a push of the slots from first on is bounded by. That a slot waits is only known in Redis, and leaders
// change with each rollout: so the leader names the slot, and the script that pushes looks.
func (e *entry) probe(first time.Time, bound int) queue.Probe {
	gap := e.grid.Next(first).Sub(first)
	if e.last.Runs < int64(bound) || gap <= 0 || gap > math.MaxInt64/time.Duration(bound) {
		return queue.Probe{} // there were not so many yet, or they would take centuries
	}
	slot := e.upTo(first.Add(-time.Duration(bound) * gap))
	if slot.IsZero() {
		return queue.Probe{}
	}
	return queue.Probe{Bound: bound, ID: task.SlotID(e.s.Name, slot), Due: e.s.JitterFor(e.s.Name, slot)}
}

// crowd takes in whether a step was kept from pushing.
func (t *tenure) crowd(e *entry, s *queue.Step) {
	crowded := len(s.Push) > 0 && s.Dropped > 0
	switch {
	case crowded && !e.crowded:
		t.log.Warn().Str("schedule", e.s.Name).Int("slots", t.cfg.Backlog).Msg("so many slots wait that new ones are skipped: does anybody handle them?")
	case !crowded && e.crowded && len(s.Push) > 0:
		t.log.Info().Str("schedule", e.s.Name).Msg("slots are pushed again")
	default:
		return
	}
	e.crowded = crowded
}
