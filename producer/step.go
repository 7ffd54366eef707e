package producer

import (
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// stepSlots is the most slots that one step pushes, so that no schedule delays the others.
const stepSlots = queue.MaxBatch / 2

// step returns the next step of a schedule at now: slots up to missed were missed, later ones up to until are on time. It
// is pure, and returns false if there is nothing to do.
//
// It deals with slots in order, and last.Slot says how far: that one number is enough never to push a slot twice. Missed
// slots that are all to run would delay those on time, so the schedule falls behind with them: see [entry.repay].
func (e *entry) step(now, missed, until time.Time) (move, bool) {
	m := e.stay()
	m.onTime = true
	if e.next.IsZero() || e.next.After(until) {
		return m, false
	}
	if !e.next.After(missed) {
		e.stepMissed(&m, now, missed)
	}
	most := e.mostPushes(stepSlots)
	for slot := e.after(m.last.Slot); len(m.step.Push) < most && !slot.IsZero() && !slot.After(until) && e.left(&m) > 0; {
		next := e.grid.Next(slot)
		m.push(e.s.slotTask(slot, next), e.s.JitterFor(e.s.Name, slot))
		m.last.Slot, slot = slot, next
	}
	return m, e.moves(&m)
}

// stay returns a move that changes nothing yet.
func (e *entry) stay() move {
	return move{
		e: e, last: e.last, behind: slices.Clone(e.behind),
		step: queue.Step{Name: e.s.Name, Expect: e.raw, Behind: e.owed},
	}
}

// moves completes a move, and reports whether it changes anything.
func (e *entry) moves(m *move) bool {
	m.step.Becomes, m.step.Remains = m.last.String(), m.behind.String()
	return m.step.Becomes != e.raw || m.step.Remains != e.owed
}

// push adds a slot's task to a move.
func (m *move) push(t *task.Task, due time.Time) {
	m.step.Push = append(m.step.Push, queue.Push{Task: t, Due: due})
	m.last.Runs++
}

// mostPushes returns how many slots one step pushes at most: fewer than n if they are large, because a step is never split.
func (e *entry) mostPushes(n int) int {
	return max(n/queue.PushSize(&task.Task{Payload: e.s.Payload, Sealed: e.s.sealed}), 1)
}

// left returns how many more runs the schedule may have, besides those that it is behind with.
func (e *entry) left(m *move) int64 {
	if e.s.MaxRuns == 0 {
		return stepSlots
	}
	return e.s.MaxRuns - m.last.Runs - e.count(m.behind)
}

// stepMissed deals with missed slots by the schedule's policy.
func (e *entry) stepMissed(m *move, now, missed time.Time) {
	latest := e.upTo(missed)
	switch e.s.Missed {
	case schedule.MissedSkip:
		e.dispose(m, latest, "policy skip")
	case schedule.MissedAll:
		e.fallBehind(m, now, missed, latest)
	default:
		if before := e.grid.Prev(latest); before.After(m.last.Slot) && !before.Before(e.next) {
			e.dispose(m, before, "policy once")
		}
		e.pushLatest(m, latest)
		m.last.Slot = latest
	}
}

// pushLatest pushes the latest missed slot to run now; where runs may not overlap, it runs behind the slots on time. It is
// due at its own time, as if it had been pushed ahead. If no consumer has claimed it by the end of the next time without a
// leader, it is swept, and the latest slot of that time runs instead.
func (e *entry) pushLatest(m *move, slot time.Time) {
	t := e.s.slotTask(slot, e.grid.Next(slot))
	t.Priority, t.Overlap = min(t.Priority, task.Normal), task.Behind
	m.push(t, e.s.JitterFor(e.s.Name, slot))
}

// dispose records that the slots up to a moment are not run, and why.
func (e *entry) dispose(m *move, to time.Time, why string) {
	n := e.grid.Count(before(e.next), to)
	if n > 0 {
		m.step.Note = history.Join(m.step.Note, history.Range(e.s.Name, e.next, to, history.Missed, n, why))
	}
	m.last.Slot = to
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sweep drops, by policy, the slots up to missed that were pushed before a time without a leader and were not claimed. With
// "once" the latest missed slot runs: if it is still to be pushed, sweep drops all; else all but that one. Where runs may
// not overlap, the slots that stay run behind those on time, like slots that are pushed late. A dropped slot does not count
// as a run, so a schedule that has had its last run goes on.
func (e *entry) sweep(missed time.Time, window time.Duration) []queue.Drop {
	if e.last.Slot.IsZero() || e.s.Missed == schedule.MissedAll && !e.s.exclusive() {
		return nil
	}
	newest := e.upTo(minTime(missed, e.last.Slot))
	if newest.IsZero() {
		return nil
	}
	var drops []queue.Drop
	lane := e.s.lane()
	next := e.after(e.last.Slot)
	keepNewest := e.s.Missed != schedule.MissedSkip && (e.last.Paused || next.IsZero() || next.After(missed))
	for slot := newest; !slot.IsZero() && e.last.Slot.Sub(slot) <= window && len(drops) < maxCatchUp; slot = e.grid.Prev(slot) {
		due := e.s.JitterFor(e.s.Name, slot)
		stays := e.s.Missed == schedule.MissedAll || slot.Equal(newest) && keepNewest
		if due.After(missed) || stays && !e.s.exclusive() {
			continue
		}
		drops = append(drops, queue.Drop{
			Place: queue.Place{Lane: lane, ID: task.SlotID(e.s.Name, slot)}, Due: due, Behind: stays,
		})
	}
	return drops
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
