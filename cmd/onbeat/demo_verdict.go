package main

import (
	"fmt"

	"github.com/onbeat/onbeat/internal/trial"
)

// demoVerdict is the verdict of the demo, as the JSON shows it.
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
	AfterKill  float64  `json:"paused_by_sigkill_ms"` // by how much the beat was late then
	AfterStop  float64  `json:"paused_by_sigstop_ms"`
	HeldUp     int      `json:"held_up"` // slots that fell due before another instance led in place of a lost one
	P50        float64  `json:"lag_p50_ms"`
	P99        float64  `json:"lag_p99_ms"`
	Max        float64  `json:"lag_max_ms"`
	MaxHeldUp  float64  `json:"lag_max_held_up_ms"`
	Audit      bool     `json:"audit_agrees"`
	Wrong      []string `json:"wrong,omitempty"`
}

func demoVerdictOf(r *trial.Result, redis string) *demoVerdict {
	return &demoVerdict{
		OK: r.OK, Redis: redis, Seconds: r.Seconds, Slots: r.Slots,
		Missed: r.Missed, Duplicated: r.Duplicated, Early: r.Early, OffGrid: r.OffGrid,
		Gap: r.Gap, HeldUp: r.HeldUp, P50: r.P50, P99: r.P99, Max: r.Max, MaxHeldUp: r.MaxHeldUp,
		Audit: r.Audit, Wrong: r.Wrong,
	}
}

// print shows the verdict to a person.
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
	a.printf("  the beat paused   %.0f ms after kill -9, %.0f ms after SIGSTOP; lost leaders held %d slots up", v.AfterKill, v.AfterStop, v.HeldUp)
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
