package rig

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/trial"
)

// Figures are the counts and times by which a scenario is judged.
type Figures struct {
	Slots, Missed, Duplicated, OffGrid int

	// Repeated is how many slots took a later attempt, with a larger fence, because a run was lost: no duplicates.
	Repeated int

	// Gap is the longest time between two neighbouring arrivals of one schedule, a repeated run not counted.
	// P50, P99 and Worst are of the time from slot to arrival.
	Gap, P50, P99, Worst time.Duration
}

// Add adds the figures of another schedule, except the lags.
func (f *Figures) Add(g Figures) {
	f.Slots += g.Slots
	f.Missed += g.Missed
	f.Duplicated += g.Duplicated
	f.OffGrid += g.OffGrid
	f.Repeated += g.Repeated
	f.Gap = max(f.Gap, g.Gap)
}

// BySlot groups the arrivals of one schedule by slot. It fails the test if one came early.
func BySlot(t *testing.T, list []trial.Arrival) map[int64][]trial.Arrival {
	t.Helper()
	slots := map[int64][]trial.Arrival{}
	for _, a := range list {
		if a.At.Before(a.Slot) {
			t.Errorf("%s arrived %s before its slot", a.ID, a.Slot.Sub(a.At))
		}
		slots[a.Slot.UnixMilli()] = append(slots[a.Slot.UnixMilli()], a)
	}
	return slots
}

// Judge counts the slots of some schedules by their outcome, by the recorder alone. The first slot that arrived sets the grid
// of a schedule, and every slot from there to until must arrive. None may come early.
func (w *World) Judge(every time.Duration, until time.Time, names ...string) (f Figures) {
	w.Helper()
	var all []trial.Arrival
	for _, name := range names {
		list := w.Of(name)
		all = append(all, list...)
		f.Add(w.JudgeOne(name, list, every, until))
	}
	l := Lags(all)
	f.P50, f.P99, f.Worst = Quantile(l, .5), Quantile(l, .99), Quantile(l, 1)
	return f
}

// JudgeOne judges the arrivals of one schedule, or of the part of it that lies on one grid.
func (w *World) JudgeOne(name string, list []trial.Arrival, every time.Duration, until time.Time) (f Figures) {
	w.Helper()
	if len(list) == 0 {
		w.Errorf("%s: nothing arrived", name)
		return f
	}
	slots := BySlot(w.T, list)
	first := slices.Min(slices.Collect(maps.Keys(slots)))
	step := every.Milliseconds()
	for ms := first; ms <= until.UnixMilli(); ms += step {
		if len(slots[ms]) == 0 {
			f.Missed++
		}
	}
	var arrivals []time.Time
	for ms, runs := range slots {
		f.Slots++
		slices.SortFunc(runs, func(a, b trial.Arrival) int { return a.At.Compare(b.At) })
		arrivals = append(arrivals, runs[0].At)
		switch {
		case (ms-first)%step != 0:
			f.OffGrid++
		case len(runs) > 1 && Rising(runs):
			f.Repeated++
		case len(runs) > 1:
			f.Duplicated++
			w.Logf("%s: duplicated: %s", name, Describe(runs))
		}
	}
	f.Gap = longestGap(arrivals)
	return f
}

// Rising reports whether each run of a slot is a later attempt than the one before, with a larger fence.
func Rising(runs []trial.Arrival) bool {
	for i := 1; i < len(runs); i++ {
		if runs[i].Attempt <= runs[i-1].Attempt || runs[i].Fence <= runs[i-1].Fence {
			return false
		}
	}
	return true
}

// longestGap returns the longest time between two neighbouring arrivals.
func longestGap(arrivals []time.Time) (gap time.Duration) {
	slices.SortFunc(arrivals, time.Time.Compare)
	for i := 1; i < len(arrivals); i++ {
		gap = max(gap, arrivals[i].Sub(arrivals[i-1]))
	}
	return gap
}

// WantWhole fails if a slot was missed, duplicated or off the grid.
func (w *World) WantWhole(what string, f Figures) {
	w.Helper()
	if f.Missed > 0 || f.Duplicated > 0 || f.OffGrid > 0 {
		w.Errorf("%s: %d missed, %d duplicated, %d off the grid, of %d slots", what, f.Missed, f.Duplicated, f.OffGrid, f.Slots)
	}
}

// WantEverySlot fails unless every slot of a schedule, from the first that arrived to the last, arrived exactly once, on one
// grid. With retries, a run may be repeated because its instance was lost.
func (w *World) WantEverySlot(name string, every time.Duration, retries bool) {
	w.Helper()
	list := w.Of(name)
	var last time.Time
	for _, a := range list {
		if a.Slot.After(last) {
			last = a.Slot
		}
	}
	f := w.JudgeOne(name, list, every, last)
	w.WantWhole(name, f)
	if f.Repeated > 0 && !retries {
		w.Errorf("%s: %d slots were repeated", name, f.Repeated)
	}
}

// Steady judges schedules that must be whole up to a moment, by the recorder and by the audit. The two must agree.
func (w *World) Steady(every time.Duration, until time.Time, names ...string) Figures {
	w.Helper()
	got := w.Judge(every, until, names...)
	w.WantWhole("the beats", got)
	lines := w.WantAuditAgrees(names...)
	for _, name := range names {
		if missed := lines[name].Missed; missed > 0 {
			w.Errorf("%s: the audit says that %d were missed", name, missed)
		}
	}
	return got
}

// Describe says how a slot ran.
func Describe(list []trial.Arrival) (s string) {
	for _, a := range list {
		s += fmt.Sprintf("[attempt %d, fence %d, release %s, at %s] ", a.Attempt, a.Fence, a.Release, a.At.Format("05.000"))
	}
	return s
}

// Lags returns the times from slot to arrival, sorted.
func Lags(list []trial.Arrival) []time.Duration {
	out := make([]time.Duration, len(list))
	for i, a := range list {
		out[i] = a.At.Sub(a.Slot)
	}
	slices.Sort(out)
	return out
}

// Quantile returns a quantile of sorted durations, or zero if there are none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*q), len(sorted)-1)]
}
