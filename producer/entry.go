package producer

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/schedule"
)

// entry is a schedule as the leader holds it.
type entry struct {
	head *definitionHead // it may be that of many, and is not changed
	s    *Schedule       // it may be what the release declares, and is not changed
	grid schedule.Grid
	raw  string // last run as it is stored in Redis
	last queue.Last
	next time.Time // the first slot that is not dealt with; zero if there is none
	at   int       // its index in the plan, -1 if it has none

	owed   string       // the slots that it is behind with, as Redis stores them
	behind queue.Behind // the same, decoded
	queued bool         // it waits for its turn to be pushed

	pause   string // the note on its pause, as Redis stores it
	seal    *seal.Keys
	crowded bool // so many of its slots wait that new ones are skipped: see [entry.probe]
}

// newEntry makes an entry of what is stored in Redis. It returns nil for a schedule that no longer exists.
func newEntry(st queue.Stored) (*entry, error) {
	if st.Definition == "" || st.Last == "" {
		return nil, nil
	}
	d, err := readDefinition(st)
	if err != nil {
		return nil, err
	}
	return entryFrom(st, &d.definitionHead, &d.Schedule)
}

// entryFrom makes the entry of a stored schedule whose definition was read. It keeps the head and s.
func entryFrom(st queue.Stored, head *definitionHead, s *Schedule) (*entry, error) {
	last, err := queue.ParseLast(st.Last)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", st.Name, err)
	}
	grid, err := s.Grid(last.Anchor)
	if err != nil {
		return nil, fmt.Errorf("schedule %q: %w", st.Name, err)
	}
	e := &entry{head: head, s: s, grid: grid, at: -1, pause: st.Pause, seal: st.Seal, last: last, raw: st.Last}
	e.owes(st.Behind)
	e.aim()
	return e, nil
}

// follow takes in a move that was made.
func (e *entry) follow(m *move) {
	e.owed, e.behind = m.step.Remains, m.behind
	e.set(m.last)
}

// set moves the entry on.
func (e *entry) set(last queue.Last) {
	e.last, e.raw = last, last.String()
	e.aim()
}

// aim finds the next slot.
func (e *entry) aim() {
	e.next = time.Time{}
	if !e.last.Paused && !e.exhausted() {
		e.next = e.after(e.last.Slot)
	}
}

// ended reports whether no slot is to come although the schedule is not paused.
func (e *entry) ended() bool { return !e.last.Paused && e.next.IsZero() }

// exhausted reports whether it has had all its runs, or will have had them when it is no longer behind.
func (e *entry) exhausted() bool {
	return e.s.MaxRuns > 0 && e.last.Runs+e.count(e.behind) >= e.s.MaxRuns
}

// spent reports whether it has had all its runs.
func (e *entry) spent() bool { return e.s.MaxRuns > 0 && e.last.Runs >= e.s.MaxRuns }

// takenBack returns the last moment whose slot a change may have taken back out of the due sets, if nothing was pushed
// since. Every change leaves a revision that is at least the clock, and a last run that is at most that revision.
func (e *entry) takenBack(pushedAhead time.Duration) time.Time {
	if store.Ms(e.last.Slot) > e.last.Rev {
		return time.Time{}
	}
	return maxTime(e.last.Slot, e.last.Anchor).Add(pushedAhead)
}

// after returns the first slot after a moment; the zero moment is before every slot.
func (e *entry) after(t time.Time) time.Time {
	if t.IsZero() {
		t = e.last.Anchor.Add(-time.Millisecond)
	}
	return e.grid.Next(t)
}

// upTo returns the last slot that is not after a moment.
func (e *entry) upTo(t time.Time) time.Time { return e.grid.Prev(t.Add(time.Nanosecond)) }

// plan is a heap of entries by their next slot.
type plan []*entry

func (p plan) Len() int           { return len(p) }
func (p plan) Less(i, j int) bool { return p[i].next.Before(p[j].next) }
func (p plan) Swap(i, j int)      { p[i], p[j] = p[j], p[i]; p[i].at, p[j].at = i, j }

// Push is for container/heap.
func (p *plan) Push(x any) {
	e, _ := x.(*entry)
	e.at = len(*p)
	*p = append(*p, e)
}

// Pop is for container/heap.
func (p *plan) Pop() any {
	old := *p
	e := old[len(old)-1]
	old[len(old)-1] = nil
	*p = old[:len(old)-1]
	e.at = -1
	return e
}

// fix puts an entry where its next slot belongs, in or out of the plan.
func (p *plan) fix(e *entry) {
	switch {
	case e.next.IsZero() && e.at >= 0:
		heap.Remove(p, e.at)
	case e.next.IsZero():
	case e.at >= 0:
		heap.Fix(p, e.at)
	default:
		heap.Push(p, e)
	}
}
