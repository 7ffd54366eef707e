package audit

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/history"
)

// ledger judges one schedule step by step, so that many schedules are audited in one pass over the history. The caller
// opens it, tells it every note, tells it which slots of unaccounted stand, then marks it asked, tells it the notes written
// since, and reads the report.
type ledger struct {
	in     input
	slots  []slot // ascending
	whys   []string
	strays []Break
	stray  int64

	failed, lost, returned int64 // counts of runs

	runs  map[int64]history.Note // the last run of each slot, by its time; nil: not asked for
	began map[int64]time.Time    // when the runs began that go on, by the time of their slot

	asked bool // the caller has asked for all slots that were unaccounted for; it does not ask again for a slot that a later note sends back
}

// slot is what is known about one slot, in 16 bytes.
type slot struct {
	ms      int64
	lag     int32 // ms from the due time to the first claim
	state   state
	flags   flags
	attempt uint8 // the last attempt that was counted, at most 255
	why     uint8 // index of the reason
}

type state uint8

// The states of a slot by its last note.
const (
	silent  state = iota // no note
	again                // it is to run again
	done                 // it ran to the end
	dead                 // it failed for good
	undone               // it was cancelled
	skipped              // its overlap policy skipped it
	missed               // its missed policy dropped it
	paused               //
	changed              //
	obscure              // a newer release wrote the word
)

type flags uint8

const (
	ran flags = 1 << iota
	twice
	early
	retried
	stands
	perhaps // it may also have run in a time whose writes are lost
	running // an instance runs it
)

// open prepares the expected slots.
func open(in input) *ledger {
	l := &ledger{in: in.withDefaults(), whys: []string{""}}
	bounds := make([][2]time.Time, len(in.Periods))
	start, room := in.From.Add(-time.Millisecond), int64(l.in.MaxSlots)
	for i, p := range in.Periods {
		end := in.To
		if !p.Until.IsZero() && p.Until.Before(end) {
			end = p.Until
		}
		if in.Over && in.Settled.Before(end) {
			end = in.Settled
		}
		bounds[i] = [2]time.Time{start, end}
		if end.After(start) {
			start = end
		}
	}
	for i := len(bounds) - 1; i >= 0; i-- { // the newest slots are those that fit
		b := &bounds[i]
		n := in.Periods[i].Grid.Count(b[0], b[1])
		if n > room {
			b[0] = nthBefore(&in.Periods[i], b[0], b[1], room)
			l.in.From = b[0].Add(time.Millisecond)
			n = room
			bounds = slices.Delete(bounds, 0, i)
			l.in.Periods = l.in.Periods[i:]
			i = 0
		}
		room -= n
	}
	l.slots = make([]slot, 0, int64(l.in.MaxSlots)-room)
	for i, b := range bounds {
		for at := range l.in.Periods[i].Grid.Between(b[0], b[1]) {
			l.slots = append(l.slots, slot{ms: at.UnixMilli()})
		}
	}
	for _, at := range in.Void {
		if s := l.find(at); s != nil {
			s.flags |= perhaps
		}
	}
	return l
}

// nthBefore returns a moment such that (it, to] has at most n slots, and nearly as many.
func nthBefore(p *period, from, to time.Time, n int64) time.Time {
	for p.Grid.Count(from, to) > n {
		step := to.Sub(from) / 64
		from = from.Add(max(step, time.Millisecond))
	}
	return from
}

func (l *ledger) find(at time.Time) *slot {
	i, ok := slices.BinarySearchFunc(l.slots, at.UnixMilli(), func(s slot, ms int64) int { return cmp.Compare(s.ms, ms) })
	if !ok {
		return nil
	}
	return &l.slots[i]
}

// period returns the period that a slot belongs to.
func (l *ledger) period(at time.Time) *period {
	for i := range l.in.Periods {
		if p := &l.in.Periods[i]; p.Until.IsZero() || !at.After(p.Until) {
			return p
		}
	}
	return nil
}

// note takes in one line of the history. The caller passes each line once, in the order in which they were written. Lines
// of other schedules are ignored.
func (l *ledger) note(n history.Note) {
	switch {
	case n.Schedule != l.in.Schedule:
	case !n.From.IsZero():
		l.noteRange(n)
	case n.Slot.Before(l.in.From) || n.Slot.After(l.in.To):
	default:
		if s := l.find(n.Slot); s != nil {
			l.noteSlot(s, n)
		} else if !n.Claimed.IsZero() && n.Slot.After(l.in.Forgot) && !l.onGrid(n.Slot) {
			l.stray++
			l.strays = keep(l.strays, Break{Slot: n.Slot, Verdict: OffGrid, Detail: "ran for a time that was no slot of the schedule"})
		}
	}
}

// changing is how long around a change slots of both rules may run.
const changing = 2 * time.Second

// onGrid reports whether a time is a slot of a rule that held about then. A slot that was pushed before the rule changed
// may still run.
func (l *ledger) onGrid(at time.Time) bool {
	var since time.Time
	for _, p := range l.in.Periods {
		held := at.After(since.Add(-changing)) && (p.Until.IsZero() || at.Before(p.Until.Add(changing)))
		if held && p.Grid.Next(at.Add(-time.Millisecond)).Equal(at) {
			return true
		}
		since = p.Until
	}
	return false
}

func (l *ledger) noteRange(n history.Note) {
	to := state(obscure)
	switch n.Word {
	case history.Was: // it says what the rule was, and nothing about slots
		return
	case history.Missed:
		to = missed
	case history.Skipped:
		to = skipped
	case history.Paused:
		to = paused
	case history.Changed, history.Deleted, history.Retired:
		to = changed
	}
	from, end := n.From.UnixMilli(), n.To.UnixMilli()
	i, _ := slices.BinarySearchFunc(l.slots, from, func(s slot, ms int64) int { return cmp.Compare(s.ms, ms) })
	for ; i < len(l.slots) && l.slots[i].ms <= end; i++ {
		if s := &l.slots[i]; s.state == silent {
			s.state, s.why = to, l.reason(n.Why)
			l.doubt(s, n)
		}
	}
}

// doubt marks a slot that may have run although it is noted as missed.
func (l *ledger) doubt(s *slot, n history.Note) {
	if s.state == missed && mayHaveRun(l.in.Losses, l.due(s.ms), n.At) {
		s.flags |= perhaps
	}
}

// reason returns the index of a reason. Reasons beyond the room for them share one without text.
func (l *ledger) reason(why string) uint8 {
	i := slices.Index(l.whys, why)
	if i < 0 && len(l.whys) < math.MaxUint8 {
		i = len(l.whys)
		l.whys = append(l.whys, why)
	}
	return uint8(max(i, 0))
}

func (l *ledger) noteSlot(s *slot, n history.Note) {
	if n.Claimed.IsZero() {
		switch n.Word {
		case history.Skipped:
			s.state, s.why = skipped, l.reason(n.Why)
		case history.Missed:
			s.state, s.why = missed, l.reason(n.Why)
			l.doubt(s, n)
		case history.Cancelled:
			s.state = undone
		default:
			s.state = obscure
		}
		return
	}
	l.claim(s, n)
	if l.runs != nil {
		l.runs[s.ms] = n
	}
	if repeats(l.in.Losses, l.due(s.ms), n.At) {
		s.flags |= perhaps
	}
	s.flags &^= running // this run has ended
	switch n.Word {
	case history.Done:
		s.state = done
	case history.Cancelled: // a user may retry it: then its attempts begin anew
		s.state, s.attempt = undone, 0
	case history.Dead: // the same
		s.state, s.attempt = dead, 0
		l.failed++
	case history.Failed:
		s.state = again
		l.failed++
	case history.Lost:
		s.state = again
		l.lost++
	case history.Returned: // the attempt does not count
		s.state = again
		l.returned++
		s.attempt--
	default:
		s.state = obscure
	}
	if s.state == again {
		s.flags |= retried
		if l.asked { // its task was put back when this was written
			s.flags |= stands
		}
	}
}

// claim takes in a claim of a slot, its first or a further one.
func (l *ledger) claim(s *slot, n history.Note) {
	due := n.Slot
	if p := l.period(n.Slot); p != nil {
		due = p.Rule.JitterFor(l.in.Schedule, n.Slot)
	}
	lag := n.Claimed.Sub(due).Milliseconds()
	if s.flags&ran == 0 {
		s.lag = int32(min(max(lag, math.MinInt32), math.MaxInt32))
	}
	if lag < 0 {
		s.flags |= early
	}
	attempt := uint8(min(max(n.Attempt, 1), math.MaxUint8))
	if s.state == done || attempt <= s.attempt && attempt < math.MaxUint8 {
		s.flags |= twice
	}
	s.flags |= ran
	s.attempt = max(s.attempt, attempt)
}

// unaccounted yields the slots that would be called lost. The caller asks whether their tasks are due or running.
func (l *ledger) unaccounted() iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for i := range l.slots {
			if l.verdict(&l.slots[i]) == Lost && !yield(time.UnixMilli(l.slots[i].ms).UTC()) {
				return
			}
		}
	}
}

// runsSince takes in that an instance runs a slot, and since when.
func (l *ledger) runsSince(slot, began time.Time) {
	if s := l.find(slot); s != nil {
		s.flags |= running
		if l.began == nil {
			l.began = map[int64]time.Time{}
		}
		l.began[s.ms] = began
	}
}

// stands takes in that the task of a slot is due or running.
func (l *ledger) stands(at time.Time) {
	if s := l.find(at); s != nil {
		s.flags |= stands
	}
}

// verdict returns the verdict on a slot by what is known so far.
func (l *ledger) verdict(s *slot) Verdict {
	switch {
	case s.flags&twice != 0:
		return Duplicated
	case s.flags&early != 0:
		return Early
	}
	switch s.state {
	case done:
		if time.Duration(s.lag)*time.Millisecond <= l.in.Tolerance {
			return OnTime
		}
		return Late
	case dead:
		return Failed
	case undone:
		return Cancelled
	case skipped:
		return Skipped
	case missed:
		if s.flags&perhaps != 0 && s.flags&ran == 0 {
			return Unknown
		}
		return Missed
	case paused:
		return Paused
	case changed:
		return Changed
	case obscure:
		return Unknown
	}
	return l.silence(s)
}
