package producer

import (
	"context"
	"slices"
	"time"

	"github.com/onbeat/onbeat/queue"
)

// defaultBacklog is how many slots of a schedule are pushed, at most, while the first of them still waits for somebody who
// handles it: else a schedule that is due often, and that nobody handles, would fill Redis.
const defaultBacklog = 50_000

// backlog is what waits of a schedule, as far as the leader knows: not more than it pushed behind a slot that waits, besides
// as many that it pushed before. A due set gives the first one first, so when that one is gone, no older one waits.
type backlog struct {
	first queue.Place // a slot that was pushed
	since int         // how many were since
	full  bool        // it waits, and so many were pushed: new ones are skipped
	said  bool        // there is an event of it
}

// pushed takes in what a step pushed.
func (b *backlog) pushed(s *queue.Step) {
	if len(s.Push) == 0 {
		return
	}
	if b.since == 0 {
		b.first = queue.Place{Lane: queue.LaneOf(s.Push[0].Task), ID: s.Push[0].Task.ID}
	}
	b.since += len(s.Push)
}

// skip deals with the slots up to a moment while too many wait.
func (b *backlog) skip(e *entry, m *move, until time.Time) {
	to := e.upTo(until)
	if n := e.grid.Count(before(e.next), to); n > 0 {
		m.step.Note = joinNotes(m.step.Note, rangeNote(e.s.Name, e.next, to, "skipped", n, "backlog"))
		m.last.Slot = to
	}
	if !b.said {
		m.step.Event = "backlog"
	}
}

// lookAtBacklogs asks whether the slots still wait behind which so many were pushed.
func (t *tenure) lookAtBacklogs(ctx context.Context) error {
	if len(t.crowded) == 0 {
		return nil
	}
	t.crowded = slices.DeleteFunc(t.crowded, func(e *entry) bool { return t.entries[e.s.Name] != e })
	places := make([]queue.Place, len(t.crowded))
	for i, e := range t.crowded {
		places[i] = e.backlog.first
	}
	waits, err := t.q.Waiting(ctx, places)
	if err != nil {
		return err
	}
	for i, e := range t.crowded {
		switch {
		case waits[i] && !e.backlog.full:
			e.backlog.full = true
			t.log.Warn().Str("schedule", e.s.Name).Int("slots", e.backlog.since).Msg("so many slots wait that new ones are skipped: does anybody handle them?")
		case !waits[i] && e.backlog.full:
			t.log.Info().Str("schedule", e.s.Name).Msg("slots are taken again")
		}
		if !waits[i] {
			e.backlog = backlog{}
		}
	}
	t.crowded = slices.DeleteFunc(t.crowded, func(e *entry) bool { return !e.backlog.full })
	return nil
}

// crowd takes in a step that was made.
func (t *tenure) crowd(e *entry, s *queue.Step) {
	e.backlog.pushed(s)
	e.backlog.said = e.backlog.said || s.Event != ""
	if e.backlog.since >= t.cfg.Backlog && !slices.Contains(t.crowded, e) {
		t.crowded = append(t.crowded, e)
	}
}
