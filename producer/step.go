package producer

import (
	"fmt"
	"sort"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// stepSlots is the most slots one step pushes, so that no schedule holds up the others.
const stepSlots = queue.MaxBatch / 2

// maxCatchUp bounds how many missed slots a schedule runs after a downtime, whatever its catch_up: what lies in Redis
// must stay bounded. Older ones are recorded as missed.
const maxCatchUp = 100_000

// step is the next thing to do for a schedule at now: slots up to missed were missed, those after it up to until are
// on time. It is pure, and returns false if there is nothing to do.
//
// Slots are dealt with in order, and last.Slot says how far: one number is enough to never push a slot twice.
func (e *entry) step(now, missed, until time.Time) (queue.Step, queue.Last, bool) {
	s := queue.Step{Name: e.s.Name, Expect: e.raw}
	last := e.last
	if e.next.IsZero() || e.next.After(until) {
		return s, last, false
	}
	if !e.next.After(missed) {
		e.stepMissed(&s, &last, now, missed)
	}
	n := 0
	for slot := e.after(last.Slot); len(s.Push) < stepSlots && !slot.IsZero() && !slot.After(until) && e.left(last) > 0; slot = e.grid.Next(slot) {
		if !slot.After(missed) {
			break // more catching up to do first, in the next step
		}
		s.Push = append(s.Push, queue.Push{Task: e.s.slotTask(slot), Due: e.s.JitterFor(e.s.Name, slot)})
		last.Slot = slot
		last.Runs++
		n++
	}
	s.Becomes = last.String()
	return s, last, n > 0 || s.Becomes != e.raw
}

// left is how many more runs the schedule may have.
func (e *entry) left(last queue.Last) int64 {
	if e.s.MaxRuns == 0 {
		return stepSlots
	}
	return e.s.MaxRuns - last.Runs
}

// stepMissed deals with slots nobody pushed in time, by the schedule's policy.
func (e *entry) stepMissed(s *queue.Step, last *queue.Last, now, missed time.Time) {
	latest := e.upTo(missed)
	switch e.s.Missed {
	case schedule.MissedSkip:
		e.dispose(s, last, latest, "policy skip")
	case schedule.MissedAll:
		e.catchUp(s, last, now, missed, latest)
	default:
		if before := e.grid.Prev(latest); before.After(last.Slot) && !before.Before(e.next) {
			e.dispose(s, last, before, "policy once")
		}
		e.pushLate(s, last, latest, task.Normal)
	}
}

// catchUp pushes missed slots, oldest first, a bounded number a step, behind everything that is on time.
func (e *entry) catchUp(s *queue.Step, last *queue.Last, now, missed, latest time.Time) {
	reach := e.s.CatchUp
	if reach <= 0 {
		reach = schedule.DefaultCatchUp
	}
	from := now.Add(-reach) // a slot exactly at the edge is within reach
	why := "older than catch_up"
	if since := maxTime(from, e.next).Add(-time.Nanosecond); e.grid.Count(since, latest) > maxCatchUp {
		from, why = e.newest(maxCatchUp, since, latest), "more than can be caught up"
	}
	if old := e.grid.Prev(minTime(from, missed.Add(time.Nanosecond))); !old.IsZero() && !old.Before(e.next) {
		e.dispose(s, last, old, why)
	}
	for slot := e.after(last.Slot); len(s.Push) < stepSlots && !slot.IsZero() && !slot.After(missed) && e.left(*last) > 0; slot = e.grid.Next(slot) {
		e.pushLate(s, last, slot, task.Low)
	}
}

// newest is a moment in (from, to] since which there are at most n slots, and no later than it has to be.
func (e *entry) newest(n int64, from, to time.Time) time.Time {
	ms := sort.Search(int(to.Sub(from)/time.Millisecond), func(i int) bool {
		return e.grid.Count(from.Add(time.Duration(i)*time.Millisecond), to) <= n
	})
	return from.Add(time.Duration(ms)*time.Millisecond + time.Nanosecond)
}

// pushLate pushes a missed slot to run now. Where runs may not overlap, it runs behind the slots on time.
func (e *entry) pushLate(s *queue.Step, last *queue.Last, slot time.Time, p task.Priority) {
	t := e.s.slotTask(slot)
	t.Priority, t.Conflict = min(t.Priority, p), task.Behind
	s.Push = append(s.Push, queue.Push{Task: t})
	last.Slot = slot
	last.Runs++
}

// dispose records that the slots up to one are not run, and why.
func (e *entry) dispose(s *queue.Step, last *queue.Last, to time.Time, why string) {
	n := e.grid.Count(e.next.Add(-time.Nanosecond), to)
	if n > 0 {
		s.Note = joinNotes(s.Note, rangeNote(e.s.Name, e.next, to, "missed", n, why))
	}
	last.Slot = to
}

// rangeNote is what the history says of slots that were never pushed.
func rangeNote(name string, from, to time.Time, word string, n int64, why string) string {
	return fmt.Sprintf("%s@%d..%d %s %d %s", name, from.UnixMilli(), to.UnixMilli(), word, n, why)
}

func joinNotes(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n" + b
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sweep drops what was pushed and not claimed before a time in which nobody led: the slots up to missed, by policy.
// With "once" the latest missed slot runs: if it is still to be pushed, all go; else all but it. Where runs may not
// overlap, those that stay run behind the slots on time, as those do that are pushed late.
func (e *entry) sweep(missed time.Time, window time.Duration) []queue.Drop {
	if e.last.Slot.IsZero() || e.s.Missed == schedule.MissedAll && !e.s.exclusive() {
		return nil
	}
	newest := e.upTo(minTime(missed, e.last.Slot))
	if newest.IsZero() {
		return nil
	}
	var drops []queue.Drop
	lane := queue.LaneOf(e.s.slotTask(newest))
	keepNewest := e.s.Missed != schedule.MissedSkip && (e.next.IsZero() || e.next.After(missed))
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
