package producer

import (
	"context"
	"slices"
	"time"
)

// sampled is how many schedules tell whether the leader pushes slots: those whose slots came last.
const sampled = 20

// Unpushed returns when the first slot came that should have been pushed before a moment, and was not. It is zero as long as the
// leader pushes: it looks at a few schedules, and one whose slots go on is enough. It knows the schedules as of the last
// [Follower.Follow].
func (f *Follower) Unpushed(ctx context.Context, before time.Time) (time.Time, error) {
	expected := f.latest(before)
	if len(expected) == 0 {
		return time.Time{}, nil
	}
	names := make([]string, len(expected))
	for i, x := range expected {
		names[i] = x.name
	}
	list, err := f.q.SchedulesNamed(ctx, names)
	if err != nil {
		return time.Time{}, err
	}
	var first time.Time
	for i, st := range list {
		e, err := newEntry(st)
		if err != nil || e == nil || e.last.Paused || e.exhausted() {
			continue // it has changed
		}
		if !e.last.Slot.Before(expected[i].slot) {
			return time.Time{}, nil
		}
		if slot := e.after(e.last.Slot); !slot.IsZero() && (first.IsZero() || slot.Before(first)) {
			first = slot
		}
	}
	return first, nil
}

// expectation is the last slot of a schedule that should have been pushed.
type expectation struct {
	name string
	slot time.Time
}

// latest returns the schedules whose slots came last before a moment.
func (f *Follower) latest(before time.Time) []expectation {
	var list []expectation
	for name, s := range f.known {
		if s.last.Paused || s.exhausted() {
			continue
		}
		if slot := s.grid.Prev(before); !slot.IsZero() {
			list = append(list, expectation{name, slot})
		}
	}
	slices.SortFunc(list, func(a, b expectation) int { return b.slot.Compare(a.slot) })
	return list[:min(len(list), sampled)]
}
