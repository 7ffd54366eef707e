package integration

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// judge counts what became of the slots of some schedules, by the recorder alone. A schedule's grid is that of the
// first slot that arrived; every slot from there to until is to arrive. Nothing may come early.
func (w *world) judge(every time.Duration, until time.Time, names ...string) figures {
	w.Helper()
	var f figures
	var all []arrival
	for _, name := range names {
		list := w.rec.of(name)
		all = append(all, list...)
		f.add(w.judgeOne(name, list, every, until))
	}
	l := lags(all)
	f.p50, f.p99 = quantile(l, .5), quantile(l, .99)
	return f
}

func (f *figures) add(g figures) {
	f.slots += g.slots
	f.missed += g.missed
	f.duplicated += g.duplicated
	f.offGrid += g.offGrid
	f.repeated += g.repeated
	f.gap = max(f.gap, g.gap)
}

// judgeOne judges what arrived of one schedule, or the part of it that lies on one grid.
func (w *world) judgeOne(name string, list []arrival, every time.Duration, until time.Time) (f figures) {
	w.Helper()
	if len(list) == 0 {
		w.Errorf("%s: nothing arrived", name)
		return f
	}
	slots := bySlot(w.T, list)
	first := slices.Min(slices.Collect(maps.Keys(slots)))
	step := every.Milliseconds()
	for ms := first; ms <= until.UnixMilli(); ms += step {
		if len(slots[ms]) == 0 {
			f.missed++
		}
	}
	var arrivals []time.Time
	for ms, runs := range slots {
		f.slots++
		arrivals = append(arrivals, slices.MinFunc(runs, func(a, b arrival) int { return a.at.Compare(b.at) }).at)
		switch {
		case (ms-first)%step != 0:
			f.offGrid++
		case len(runs) > 1 && distinctAttempts(runs):
			f.repeated++
		case len(runs) > 1:
			f.duplicated++
			w.Logf("%s: duplicated: %s", name, describe(runs))
		}
	}
	f.gap = longestGap(arrivals)
	return f
}

// longestGap is the longest time between two neighbouring arrivals.
func longestGap(arrivals []time.Time) (gap time.Duration) {
	slices.SortFunc(arrivals, time.Time.Compare)
	for i := 1; i < len(arrivals); i++ {
		gap = max(gap, arrivals[i].Sub(arrivals[i-1]))
	}
	return gap
}

// wantSteady judges the twenty schedules and reports the scenario: nothing missed, duplicated or off the grid, by the
// recorder and by the audit alike. Zero for gap sets no limit to it; with a limit, nothing may have been repeated
// either: it is for scenarios in which nothing that works is lost.
//
// A slot less than two intervals before the end may be left to nobody.
func (f *fleet) wantSteady(scenario string, gap time.Duration, besides ...string) {
	f.Helper()
	got := f.judge(fleetEvery, f.ended.Add(-2*fleetEvery), f.beats...)
	f.wantWhole("the beats", got)
	if gap > 0 && (got.gap >= gap || got.repeated > 0) {
		f.Errorf("longest gap %s, want under %s; %d repeated, want none", got.gap, gap, got.repeated)
	}
	f.wantAuditAgrees(f.beats...)
	_, lines := f.audit()
	for _, name := range f.beats {
		if missed := lines[name].Missed; missed > 0 {
			f.Errorf("%s: the audit says that %d were missed", name, missed)
		}
	}
	f.row(scenario, got, besides...)
	if f.Failed() {
		f.showLatest()
	}
}

// wantWhole fails if a slot was missed, duplicated or off the grid.
func (w *world) wantWhole(what string, f figures) {
	w.Helper()
	if f.missed > 0 || f.duplicated > 0 || f.offGrid > 0 {
		w.Errorf("%s: %d missed, %d duplicated, %d off the grid, of %d slots", what, f.missed, f.duplicated, f.offGrid, f.slots)
	}
}

// showLatest says which runs were latest, for whoever has to find out why.
func (f *fleet) showLatest() {
	list := f.rec.all()
	slices.SortFunc(list, func(a, b arrival) int { return cmp.Compare(b.at.Sub(b.slot), a.at.Sub(a.slot)) })
	for _, a := range list[:min(len(list), 5)] {
		f.Logf("%s arrived %s after its slot, from %s", a.id, a.at.Sub(a.slot), a.release)
	}
}
