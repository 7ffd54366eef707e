package producer

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

// memory is the knowledge of the schedules of an instance that has led. If Redis comes back without them, the instance restores
// them as they were, on their grid. An instance that never led has no memory: it declares the schedules anew.
type memory struct {
	version int64
	entries map[string]*entry
	seen    time.Time // the clock of Redis when it last answered; tasks that were due by then were claimed
}

// known returns the knowledge of this term: the memory from before the term, until the term has read all schedules.
func (t *term) known() memory {
	if !t.whole {
		return t.before
	}
	seen, lags := t.session.Claimed()
	if v := t.session.View(); v.May && !lags { // else nothing was claimed by then: there is a pause, say
		seen = maxTime(v.Now, seen)
	}
	return memory{version: t.version, entries: t.entries, seen: seen}
}

// remember keeps the knowledge of a term at its end. If another instance leads now, it keeps nothing: the new leader knows
// better.
func (s *Scheduler) remember(ctx context.Context, t *term, err error) {
	s.memory = t.known()
	if errors.Is(err, queue.ErrNotLeader) || errors.Is(context.Cause(ctx), instance.ErrDeposed) {
		s.memory = memory{}
	}
}

// forget drops the memory when a session ends in which another instance led.
func (s *Scheduler) forget(session *instance.Session) {
	if v := session.View(); v.Leader != "" && v.Leader != session.ID {
		s.memory = memory{}
	}
}

// recall restores the schedules that Redis lost, before a new leader could make them anew. It waits for Redis to answer, for as
// long as the session lives. If Redis refuses a schedule, because it is full, recall leaves it to the term. The memory is kept
// until then, because Redis may be lost once more.
func (s *Scheduler) recall(session *instance.Session) {
	if len(s.memory.entries) == 0 {
		return
	}
	t := &term{Scheduler: s, session: session}
	_ = t.insist(session.Context(), func(ctx context.Context) error {
		_, err := t.without(ctx, t.restore(ctx, s.memory, nil))
		return err
	})
}

// restored makes the change that restores the schedule as it was at seen. As far as this instance knows, the slots up to
// seen have run, which is more than Redis knows. The slots after seen are pushed, some of them perhaps again.
func (e *entry) restored(seen time.Time) (*queue.Change, error) {
	d := definition{definitionHead: *e.head, Schedule: *e.s}.sealedWith(e.seal)
	text, err := d.encode()
	if err != nil {
		return nil, err
	}
	c := &queue.Change{
		Name: e.s.Name, Definition: text, Anchor: queue.Anchor{At: e.last.Anchor}, Pause: &e.last.Paused,
		Runs: e.last.Runs, Remains: e.owed, Event: "schedule restored",
	}
	if _, ok := queue.ParsePause(e.pause); ok && e.last.Paused {
		c.Noted = e.pause
	}
	if e.last.Slot.IsZero() {
		return c, nil
	}
	c.Settled = minTime(seen, e.last.Slot)
	c.Runs = max(0, c.Runs-e.grid.Count(c.Settled, e.last.Slot))
	if first := e.after(time.Time{}); !first.IsZero() && !first.After(c.Settled) {
		n := e.grid.Count(first.Add(-time.Nanosecond), c.Settled)
		c.Note = history.Range(e.s.Name, first, e.upTo(c.Settled), history.Forgotten, n, "redis lost its last writes")
	}
	return c, nil
}
