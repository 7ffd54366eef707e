package trial

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
)

// judgeAudit compares what the audit says with what the receiver saw.
func (r *Result) judgeAudit(e Evidence, by map[string][]Arrival) {
	reports := map[string]*audit.Report{}
	for i := range e.Reports {
		reports[e.Reports[i].Schedule] = &e.Reports[i]
	}
	r.Audit = true
	disagrees := func(format string, args ...any) {
		r.Audit = false
		r.wrong("the audit does not agree: "+format, args...)
	}
	var given int64
	for _, name := range slices.Sorted(maps.Keys(e.Grids)) {
		a := reports[name]
		if a == nil {
			disagrees("it has no report of %s", name)
			continue
		}
		slots := map[int64]bool{}
		for _, x := range by[name] {
			slots[x.Slot.UnixMilli()] = true
		}
		if ran := a.Counts[audit.OnTime] + a.Counts[audit.Late]; ran != int64(len(slots)) {
			disagrees("%s: it counts %d slots that ran, and %d arrived", name, ran, len(slots))
		}
		for _, b := range a.Breaks {
			disagrees("%s: slot %s: %s: %s", name, clock(b.Slot), b.Verdict, b.Detail)
		}
		for _, v := range []audit.Verdict{audit.Skipped, audit.Paused, audit.Changed, audit.Cancelled, audit.Failed, audit.Unknown} {
			if n := a.Counts[v]; n > 0 {
				disagrees("%s: it counts %d slots as %s, and the scenario has no cause for that", name, n, v)
			}
		}
		if known := a.LostRuns + a.FailedRuns; r.repeats[name] > known {
			disagrees("%s: %d runs were repeated, and it counts %d that were lost or failed", name, r.repeats[name], known)
		}
		given += a.Counts[audit.Missed]
	}
	if given != int64(r.ByPolicy) {
		disagrees("it counts %d slots as missed by their policy, and %d are absent for that reason", given, r.ByPolicy)
	}
}

// Describe says how a slot or a task ran.
func Describe(runs []Arrival) string {
	var parts []string
	for _, a := range runs {
		parts = append(parts, fmt.Sprintf("attempt %d by %s at %s", a.Attempt, a.Release, clock(a.At)))
	}
	return strings.Join(parts, ", ")
}

func clock(t time.Time) string { return t.Local().Format("15:04:05.000") }

// Millis returns a duration as reports show it.
func Millis(d time.Duration) float64 { return float64(d.Microseconds()/100) / 10 }
