package integration

import (
	"cmp"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// wantSteady judges the twenty schedules and reports the scenario. No slot may be missed, duplicated or off the grid, by the
// recorder and by the audit alike. A gap of zero sets no limit. A limit is for scenarios that lose no working instance: then
// no run may have been repeated either. The limit itself is for a soak; beside other tests it is a second, a fifth of a lease, and more if
// the machine stood still.
//
// A slot less than two intervals before the end may have no instance left to run it.
func (f *fleet) wantSteady(scenario string, gap time.Duration, besides ...string) {
	f.Helper()
	got := f.Steady(fleetEvery, f.ended.Add(-2*fleetEvery), f.beats...)
	if gap > 0 && !testredis.Soak() {
		gap = max(gap, time.Second) + f.still.excuse()
	}
	if gap > 0 && (got.Gap >= trial.Millis(gap) || got.Repeated > 0) {
		f.Errorf("longest gap %.1f ms, want under %s; %d repeated, want none", got.Gap, gap, got.Repeated)
	}
	f.Row(scenario, got, besides...)
	if f.Failed() {
		f.showLatest()
	}
}

// showLatest lists the runs that were latest, to help find the cause.
func (f *fleet) showLatest() {
	list := f.Rec.Arrivals()
	slices.SortFunc(list, func(a, b trial.Arrival) int { return cmp.Compare(b.At.Sub(b.Slot), a.At.Sub(a.Slot)) })
	for _, a := range list[:min(len(list), 5)] {
		f.Logf("%s arrived %s after its slot, from %s", a.ID, a.At.Sub(a.Slot), a.Release)
	}
}
