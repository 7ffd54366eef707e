package producer

import (
	"context"
	"time"
)

// Ahead counts the slots to come of all schedules, as of the last [Follower.Follow]. Each number counts one step; the first step
// begins after the given moment. The times are slots, without jitter. Paused schedules have none.
func (f *Follower) Ahead(after time.Time, step time.Duration, steps int) []int64 {
	sums := make([]int64, steps)
	for _, s := range f.known {
		if s.last.Paused || s.exhausted() {
			continue
		}
		for i := range sums {
			from := after.Add(time.Duration(i) * step)
			sums[i] += s.grid.Count(from, from.Add(step))
		}
	}
	return sums
}

// Due returns when a slot of a schedule was due, with the jitter that the schedule has now. That is the slot itself for a schedule
// that is not known.
func (f *Follower) Due(schedule string, slot time.Time) time.Time {
	if s := f.known[schedule]; s != nil {
		return s.s.JitterFor(schedule, slot)
	}
	return slot
}

// Behind returns the schedules that are behind, and with how many slots: they were missed, and are still to be pushed. It knows the
// schedules as of the last [Follower.Follow].
func (f *Follower) Behind(ctx context.Context) (map[string]int64, error) {
	owed, err := f.q.Behind(ctx)
	if err != nil {
		return nil, err
	}
	slots := map[string]int64{}
	for name, text := range owed {
		s := f.known[name]
		if s == nil {
			continue
		}
		now := *s.entry
		now.owes(text)
		if n := now.count(now.behind); n > 0 {
			slots[name] = n
		}
	}
	return slots, nil
}
