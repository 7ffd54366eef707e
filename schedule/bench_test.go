package schedule

import (
	"testing"
	"time"
)

var benches = []struct {
	name string
	rule Rule
}{
	{"every", Every(time.Second)},
	{"minutely UTC", Cron("* * * * *", nil)},
	{"daily Seoul", cronIn("0 2 * * *", "Asia/Seoul")},
	{"five minutes Berlin", cronIn("*/5 * * * *", "Europe/Berlin")},
	{"workdays New York", cronIn("30 9 * * MON-FRI", "America/New_York")},
	{"last working day Berlin", cronIn("0 9 LW * *", "Europe/Berlin")},
	{"29 February Berlin", cronIn("0 0 29 2 *", "Europe/Berlin")},
	{"Sunday 29 February UTC", Cron("0 0 29 2 */7", nil)},
}

func BenchmarkGrid_Next(b *testing.B) {
	for _, bench := range benches {
		g := mustGrid(b, bench.rule, ts("2020-01-01"))
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			at := ts("2026-06-01 12:34:56")
			for b.Loop() {
				if g.Next(at).IsZero() {
					b.Fatal("no slot")
				}
			}
		})
	}
}

func BenchmarkGrid_Prev(b *testing.B) {
	for _, bench := range benches {
		g := mustGrid(b, bench.rule, ts("1990-01-01"))
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			at := ts("2026-06-01 12:34:56")
			for b.Loop() {
				g.Prev(at)
			}
		})
	}
}

func BenchmarkGrid_Count(b *testing.B) {
	g := mustGrid(b, cronIn("*/5 * * * *", "Europe/Berlin"), ts("2020-01-01"))
	b.ReportAllocs()
	from, to := ts("2026-06-01"), ts("2027-06-01")
	for b.Loop() {
		g.Count(from, to)
	}
}

func BenchmarkRule_Grid(b *testing.B) {
	r, at := cronIn("30 9 * * MON-FRI", "America/New_York"), ts("2026-01-01")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Grid(at); err != nil {
			b.Fatal(err)
		}
	}
}

// Not parallel: allocations are counted for the whole process.
func TestGrid_NextAllocatesNothing(t *testing.T) {
	at := ts("2026-06-01 12:34:56")
	for _, bench := range benches {
		g := mustGrid(t, bench.rule, ts("2020-01-01"))
		if n := testing.AllocsPerRun(100, func() { g.Next(at); g.Prev(at); g.Count(at, at.Add(day)) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", bench.name, n)
		}
	}
}
