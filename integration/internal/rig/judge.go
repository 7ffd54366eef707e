package rig

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// evidence is of some schedules with the same interval. The first slot that arrived sets the grid of each.
func (w *World) evidence(every time.Duration, until time.Time, lists map[string][]trial.Arrival) trial.Evidence {
	w.Helper()
	e := trial.Evidence{Grids: map[string]schedule.Grid{}, Until: until, Unaudited: true}
	for name, list := range lists {
		zero := until
		for _, a := range list {
			zero = slices.MinFunc([]time.Time{zero, a.Slot}, time.Time.Compare)
		}
		grid, err := schedule.Every(every).Grid(zero)
		if err != nil {
			w.Fatal(err)
		}
		e.Grids[name] = grid
		e.Arrivals = append(e.Arrivals, list...)
	}
	return e
}

// Judge judges schedules by the recorder alone. Every slot from the first that arrived up to a moment must be there.
func (w *World) Judge(every time.Duration, until time.Time, names ...string) *trial.Result {
	w.Helper()
	lists := map[string][]trial.Arrival{}
	for _, name := range names {
		lists[name] = w.Of(name)
	}
	return trial.Judge(w.evidence(every, until, lists))
}

// JudgeOne judges the arrivals of one schedule, or of the part of it that lies on one grid.
func (w *World) JudgeOne(name string, list []trial.Arrival, every time.Duration, until time.Time) *trial.Result {
	w.Helper()
	return trial.Judge(w.evidence(every, until, map[string][]trial.Arrival{name: list}))
}

// WantWhole fails unless every slot ran, on the grid, not early, and again only as a further attempt with a larger fence.
func (w *World) WantWhole(what string, r *trial.Result) {
	w.Helper()
	for _, wrong := range r.Wrong {
		w.Errorf("%s: %s", what, wrong)
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
	r := w.JudgeOne(name, list, every, last)
	w.WantWhole(name, r)
	if r.Repeated > 0 && !retries {
		w.Errorf("%s: %d slots were repeated", name, r.Repeated)
	}
}

// Steady judges schedules that must be whole up to a moment, by the recorder and by the audit. The two must agree.
func (w *World) Steady(every time.Duration, until time.Time, names ...string) *trial.Result {
	w.Helper()
	lists := map[string][]trial.Arrival{}
	for _, name := range names {
		lists[name] = w.Of(name)
	}
	e := w.evidence(every, until, lists)
	e.Reports, e.Unaudited = w.WantAuditClean(), false
	r := trial.Judge(e)
	w.WantWhole("the beats", r)
	return r
}

// WantAuditClean fails if onbeat audit finds a broken promise, or says by its exit code something else than by its reports. It allows
// other trouble, because the test has stopped the instances, or lost slots to a policy. It returns the reports.
func (w *World) WantAuditClean() []audit.Report {
	w.Helper()
	code, out, errs := w.Try("audit", "--json", "--since", "2h") // longer than the longest test
	var all struct{ Schedules []audit.Report }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		w.Fatalf("audit: exit %d: %v: %s%s", code, err, out, errs)
	}
	troubled := slices.ContainsFunc(all.Schedules, func(r audit.Report) bool { return !r.OK() })
	broken := slices.ContainsFunc(all.Schedules, func(r audit.Report) bool { return r.Broken() })
	if broken || (code != 0) != troubled {
		w.Errorf("audit: exit %d: %s", code, out)
	}
	if len(all.Schedules) == 0 {
		w.Error("audit: it knows no schedule")
	}
	return all.Schedules
}

// WantAuditAgrees is WantAuditClean, and also fails unless the audit counts as many slots run as the recorder saw from a
// moment on.
func (w *World) WantAuditAgrees(names ...string) {
	w.Helper()
	w.WantAuditAgreesSince(time.Time{}, names...)
}

// inFlight is how long before a loss a run may have begun that is settled after it.
const inFlight = 5 * time.Second

// WantAuditAgreesSince is WantAuditAgrees where Redis knows nothing from before a moment, but the ends of runs that went on then.
func (w *World) WantAuditAgreesSince(since time.Time, names ...string) {
	w.Helper()
	reports := w.WantAuditClean()
	for _, name := range names {
		slots, went := map[int64]bool{}, map[int64]bool{}
		for _, a := range w.Of(name) {
			if _, slot, ok := task.ParseSlotID(a.ID); ok && a.At.After(since.Add(-inFlight)) {
				went[slot.UnixMilli()] = true
				if a.At.After(since) {
					slots[slot.UnixMilli()] = true
				}
			}
		}
		ran := int64(0)
		for _, r := range reports {
			if r.Schedule == name {
				ran = r.Counts[audit.OnTime] + r.Counts[audit.Late]
			}
		}
		if ran < int64(len(slots)) || ran > int64(len(went)) {
			w.Errorf("audit says that %d slots of %s ran, the recorder saw %d", ran, name, len(slots))
		}
	}
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

// Rising reports whether each run of a slot is a later attempt than the one before, with a larger fence.
func Rising(runs []trial.Arrival) bool {
	for i := 1; i < len(runs); i++ {
		if runs[i].Attempt <= runs[i-1].Attempt || runs[i].Fence <= runs[i-1].Fence {
			return false
		}
	}
	return true
}
