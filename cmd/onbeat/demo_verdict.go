package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/audit"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/schedule"
)

// demoVerdict is what the recorder saw against what was promised, and what the audit says of it.
type demoVerdict struct {
	OK         bool     `json:"ok"`
	Redis      string   `json:"redis"`
	Seconds    float64  `json:"seconds"`
	Slots      int      `json:"slots"`
	Missed     int      `json:"missed"`
	Duplicated int      `json:"duplicated"`
	Early      int      `json:"early"`
	OffGrid    int      `json:"off_grid"`
	Gap        float64  `json:"longest_gap_ms"`
	HeldUp     int      `json:"held_up"` // slots that fell due while the lease of a lost leader ran
	P50        float64  `json:"lag_p50_ms"`
	P99        float64  `json:"lag_p99_ms"`
	Max        float64  `json:"lag_max_ms"`
	MaxHeldUp  float64  `json:"lag_max_held_up_ms"`
	Audit      bool     `json:"audit_agrees"`
	Wrong      []string `json:"wrong,omitempty"`
}

// verdict is given when every process has stopped.
func (d *demo) verdict(ctx context.Context) (*demoVerdict, error) {
	status, err := d.client.Schedules().Get(ctx, demoSchedule)
	if err != nil {
		return nil, err
	}
	grid, err := status.Grid()
	if err != nil {
		return nil, err
	}
	list := d.rec.Arrivals()
	v := judgeDemo(grid, list, d.trials)
	v.Redis, v.Seconds = d.redis.Version(), time.Since(d.began).Round(100*time.Millisecond).Seconds()

	reports, err := audit.Run(ctx, d.client.Queue(), d.client.Schedules(), audit.Options{Schedule: demoSchedule})
	if err != nil {
		return nil, err
	}
	r := &reports[0]
	ran := r.Counts[audit.OnTime] + r.Counts[audit.Late]
	v.Audit = !r.Broken() && ran == int64(v.Slots-v.Missed)
	if !v.Audit {
		v.wrong("the audit does not agree: it says that %d slots ran, and %v", ran, r.Counts)
		for _, b := range r.Breaks {
			v.wrong("  %s: %s: %s", b.Slot.Format(time.RFC3339Nano), b.Verdict, b.Detail)
		}
	}
	v.OK = len(v.Wrong) == 0
	if stall := time.Duration(d.stall.Load()); !v.OK && stall > demoLease/4 {
		v.wrong("this machine let the demo stand still for %.0f ms at a time: try again when it is less busy", millis(stall))
	}
	return v, nil
}

func (v *demoVerdict) wrong(format string, args ...any) {
	v.Wrong = append(v.Wrong, fmt.Sprintf(format, args...))
}

// judgeDemo holds what arrived against the grid, up to the newest slot that arrived. Slots that fell due within a trial
// are measured apart.
func judgeDemo(grid schedule.Grid, list []trial.Arrival, trials []demoTrial) *demoVerdict {
	v := &demoVerdict{}
	if len(list) == 0 {
		v.wrong("nothing arrived")
		return v
	}
	seen := map[int64][]trial.Arrival{}
	newest := list[0].Slot
	for i, a := range list {
		seen[a.Slot.UnixMilli()] = append(seen[a.Slot.UnixMilli()], a)
		if a.Slot.After(newest) {
			newest = a.Slot
		}
		if a.At.Before(a.Slot) {
			v.Early++
			v.wrong("slot %s arrived %s early", clock(a.Slot), a.Slot.Sub(a.At))
		}
		if !grid.Next(a.Slot.Add(-time.Millisecond)).Equal(a.Slot) {
			v.OffGrid++
			v.wrong("slot %s is not on the grid", clock(a.Slot))
		}
		if i > 0 {
			v.Gap = max(v.Gap, millis(a.At.Sub(list[i-1].At)))
		}
	}
	var calm, held []time.Duration
	for slot := range grid.Between(time.Time{}, newest) {
		v.Slots++
		runs := seen[slot.UnixMilli()]
		switch {
		case len(runs) == 0:
			v.Missed++
			v.wrong("slot %s never arrived", clock(slot))
			continue
		case len(runs) > 1:
			v.Duplicated++
			v.wrong("slot %s arrived %d times: %s", clock(slot), len(runs), describeRuns(runs))
		}
		lag := runs[0].At.Sub(slot)
		if slices.ContainsFunc(trials, func(t demoTrial) bool { return slot.After(t.from) && slot.Before(t.to) }) {
			held = append(held, lag)
		} else {
			calm = append(calm, lag)
		}
	}
	slices.Sort(calm)
	if n := len(calm); n > 0 {
		v.P50, v.P99, v.Max = millis(calm[n/2]), millis(calm[(n*99-1)/100]), millis(calm[n-1])
	}
	if v.HeldUp = len(held); v.HeldUp > 0 {
		v.MaxHeldUp = millis(slices.Max(held))
	}
	return v
}

func describeRuns(runs []trial.Arrival) string {
	var parts []string
	for _, r := range runs {
		parts = append(parts, fmt.Sprintf("attempt %d by %s at %s", r.Attempt, r.Release, clock(r.At)))
	}
	return strings.Join(parts, ", ")
}

func clock(t time.Time) string { return t.Local().Format("15:04:05.000") }

func millis(d time.Duration) float64 { return float64(d.Microseconds()/100) / 10 }

// print says it to a person.
func (v *demoVerdict) print(a *app) {
	count := func(name string, n int) string {
		text := fmt.Sprintf("%d %s", n, name)
		if n > 0 {
			return a.style.red(text)
		}
		return a.style.green(text)
	}
	a.printf("")
	a.printf("%s  %d slots in %.1f s: %s, %s, %s, %s", a.style.bold("Verdict"), v.Slots, v.Seconds,
		count("missed", v.Missed), count("duplicated", v.Duplicated), count("early", v.Early), count("off the grid", v.OffGrid))
	a.printf("  slot to arrival   p50 %.1f ms, p99 %.1f ms, max %.1f ms (%d slots)", v.P50, v.P99, v.Max, v.Slots-v.Missed-v.HeldUp)
	a.printf("  held up           %d slots, while the lease of a lost leader ran out; the longest by %.0f ms", v.HeldUp, v.MaxHeldUp)
	a.printf("  longest silence   %.0f ms between two beats", v.Gap)
	if v.Audit {
		a.printf("  onbeat audit      agrees, from the history in Redis")
	}
	for _, w := range v.Wrong {
		a.printf("  %s", a.style.red("✗ "+w))
	}
	if v.OK {
		a.printf("%s", a.style.green("✓ Three releases, one SIGTERM, one SIGKILL and one SIGSTOP of a leader: every slot once."))
	}
}
