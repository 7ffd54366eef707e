package integration

import (
	"cmp"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/trial"
)

// wantSteady judges the twenty schedules and reports the scenario: nothing missed, duplicated or off the grid, by the
// recorder and by the audit alike. Zero for gap sets no limit to it; with a limit, nothing may have been repeated
// either: it is for scenarios in which nothing that works is lost.
//
// A slot less than two intervals before the end may be left to nobody.
func (f *fleet) wantSteady(scenario string, gap time.Duration, besides ...string) {
	f.Helper()
	got := f.Steady(fleetEvery, f.ended.Add(-2*fleetEvery), f.beats...)
	if gap > 0 && (got.Gap >= gap || got.Repeated > 0) {
		f.Errorf("longest gap %s, want under %s; %d repeated, want none", got.Gap, gap, got.Repeated)
	}
	f.Row(scenario, got, besides...)
	if f.Failed() {
		f.showLatest()
	}
}

// showLatest says which runs were latest, for whoever has to find out why.
func (f *fleet) showLatest() {
	list := f.Rec.Arrivals()
	slices.SortFunc(list, func(a, b trial.Arrival) int { return cmp.Compare(b.At.Sub(b.Slot), a.At.Sub(a.Slot)) })
	for _, a := range list[:min(len(list), 5)] {
		f.Logf("%s arrived %s after its slot, from %s", a.ID, a.At.Sub(a.Slot), a.Release)
	}
}
