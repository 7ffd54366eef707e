package producer

import "time"

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
