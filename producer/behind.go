package producer

import (
	"context"
	"sort"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// maxCatchUp bounds how many missed slots a schedule runs after a downtime, whatever its catch_up, because the memory in
// Redis must stay bounded. Older slots are recorded as missed.
const maxCatchUp = 100_000

// maxSpans bounds how many separate spans of missed slots a schedule is behind with at once.
const maxSpans = 16

// How many of the slots that schedules are behind with are pushed: of one schedule before the next has its turn, and of all
// before the leader checks again for slots on time.
const (
	turnSlots  = 100
	roundSlots = 1000
)

// reach returns how far back missed slots are run.
func (e *entry) reach() time.Duration {
	if e.s.CatchUp > 0 {
		return e.s.CatchUp
	}
	return schedule.DefaultCatchUp
}

// count returns how many slots the spans hold.
func (e *entry) count(spans []queue.Span) (n int64) {
	for _, s := range spans {
		n += e.grid.Count(s.From, s.To)
	}
	return n
}

// owes reads the spans that are stored in Redis. A damaged text counts as no span.
func (e *entry) owes(text string) {
	e.owed = text
	e.behind, _ = queue.ParseBehind(text)
}

// fallBehind puts off the missed slots up to latest: they are pushed oldest first, behind all tasks on time.
func (e *entry) fallBehind(m *move, now, missed, latest time.Time) {
	from := now.Add(-e.reach()) // a slot exactly at the edge is within reach
	if old := e.grid.Prev(minTime(from, missed.Add(time.Nanosecond))); !old.IsZero() && !old.Before(e.next) {
		e.dispose(m, old, "older than catch_up")
	}
	first := e.after(m.last.Slot)
	if first.IsZero() || first.After(latest) {
		return
	}
	if n := len(m.behind) - 1; n >= 0 && m.behind[n].To.Equal(m.last.Slot) { // no slot was on time since
		m.behind[n].To = latest
	} else {
		m.behind = append(m.behind, queue.Span{From: before(first), To: latest})
	}
	m.last.Slot = latest
	e.trim(m)
}

// trim bounds the slots that a schedule is behind with, also to its max_runs: then the schedule ends with the last slot that may
// run.
func (e *entry) trim(m *move) {
	const why = "too many slots to catch up"
	if n := len(m.behind) - maxSpans; n > 0 {
		e.shed(m, m.behind[n-1].To, why)
	}
	for over := e.count(m.behind) - maxCatchUp; over > 0; over = e.count(m.behind) - maxCatchUp {
		s := m.behind[0]
		to := s.To
		if n := e.grid.Count(s.From, s.To); n > over {
			to = e.grid.Prev(e.newest(n-over, s.From, s.To))
		}
		e.shed(m, to, why)
	}
	if over := -e.left(m); e.s.MaxRuns > 0 && over > 0 {
		s := &m.behind[len(m.behind)-1]
		keep := e.grid.Count(s.From, s.To) - over
		s.To = s.From
		for range keep {
			s.To = e.grid.Next(s.To)
		}
		m.last.Slot = s.To
	}
}

// newest returns the earliest moment in (from, to] after which there are at most n slots.
func (e *entry) newest(n int64, from, to time.Time) time.Time {
	ms := sort.Search(int(to.Sub(from)/time.Millisecond), func(i int) bool {
		return e.grid.Count(from.Add(time.Duration(i)*time.Millisecond), to) <= n
	})
	return from.Add(time.Duration(ms)*time.Millisecond + time.Nanosecond)
}

// shed records that the slots up to a moment, of those that the schedule is behind with, are not run.
func (e *entry) shed(m *move, to time.Time, why string) {
	for len(m.behind) > 0 {
		s := &m.behind[0]
		end := minTime(to, s.To)
		if n := e.grid.Count(s.From, end); n > 0 {
			m.step.Note = history.Join(m.step.Note, history.Range(e.s.Name, e.grid.Next(s.From), e.upTo(end), history.Missed, n, why))
		}
		if end.Before(s.To) {
			s.From = maxTime(s.From, end)
			return
		}
		m.behind = m.behind[1:]
	}
}

// repay returns the next step of a schedule that is behind: it pushes at most most of its missed slots. It checks the
// policy again, because the policy may have changed and time has passed.
func (e *entry) repay(now time.Time, most int) (move, bool) {
	m := e.stay()
	if e.last.Paused {
		return m, false
	}
	e.clip(&m)
	if len(m.behind) == 0 {
		return m, e.moves(&m)
	}
	end := m.behind[len(m.behind)-1].To
	switch e.s.Missed {
	case schedule.MissedAll:
		e.shed(&m, now.Add(-e.reach()-time.Nanosecond), "older than catch_up")
	case schedule.MissedSkip:
		e.shed(&m, end, "policy skip")
	default:
		e.shed(&m, e.grid.Prev(end), "policy once")
		if e.s.MaxRuns > 0 && m.last.Runs >= e.s.MaxRuns {
			e.shed(&m, end, "max_runs")
			return m, e.moves(&m)
		}
		e.pushLatest(&m, end)
		m.behind = nil
		return m, e.moves(&m)
	}
	most = e.mostPushes(most)
	for len(m.behind) > 0 && len(m.step.Push) < most && (e.s.MaxRuns == 0 || m.last.Runs < e.s.MaxRuns) {
		e.pushOldest(&m)
	}
	if e.s.MaxRuns > 0 && m.last.Runs >= e.s.MaxRuns {
		e.shed(&m, end, "max_runs")
	}
	return m, e.moves(&m)
}

// clip gives up the slots after the rule's until, which may have been moved to an earlier time. Their number is no longer
// known.
func (e *entry) clip(m *move) {
	for n := len(m.behind) - 1; n >= 0; n-- {
		s := &m.behind[n]
		to := e.upTo(s.To)
		if !to.Before(s.To) {
			return
		}
		to = maxTime(to, s.From)
		m.step.Note = history.Join(m.step.Note, history.Range(e.s.Name, to.Add(time.Millisecond), s.To, history.Changed, 0, "schedule was changed"))
		if s.To = to; to.After(s.From) {
			return
		}
		m.behind = m.behind[:n]
	}
}

// pushOldest pushes the oldest slot that the schedule is behind with, behind all tasks on time.
func (e *entry) pushOldest(m *move) {
	s := &m.behind[0]
	s.From = e.grid.Next(s.From)
	t := e.s.slotTask(s.From, e.grid.Next(s.From))
	t.Priority, t.Overlap = min(t.Priority, task.Low), task.Behind
	m.push(t, e.s.JitterFor(e.s.Name, s.From)) // not earlier: the slot may have been missed by less than its jitter
	if !s.From.Before(s.To) {
		m.behind = m.behind[1:]
	}
}

// forgone notes that the slots that the schedule is behind with are not run.
func (e *entry) forgone(word history.Word, why string) (note string) {
	for _, s := range e.behind {
		note = history.Join(note, history.Range(e.s.Name, e.grid.Next(s.From), s.To, word, e.grid.Count(s.From, s.To), why))
	}
	return note
}

// owe queues an entry that is behind for its turn to be pushed.
func (t *term) owe(e *entry) {
	if e.owed != "" && !e.last.Paused && !e.queued {
		e.queued = true
		t.behind = append(t.behind, e)
	}
}

// repay pushes some of the slots that schedules are behind with, each schedule in its turn.
func (t *term) repay(ctx context.Context) error {
	var moves []move
	now := t.clock.Now()
	for size := 0; len(t.behind) > 0 && size < roundSlots; {
		e := t.behind[0]
		t.behind, e.queued = t.behind[1:], false
		if t.entries[e.s.Name] != e {
			continue // it was read again since
		}
		if m, ok := e.repay(now, turnSlots); ok {
			moves = append(moves, m)
			size += 1 + len(m.step.Push)
		}
	}
	return t.advance(ctx, moves)
}
