package audit

import (
	"testing"

	"github.com/onbeat/onbeat/internal/history"
)

// BenchmarkJudge reports what a million slots cost.
func BenchmarkJudge(b *testing.B) {
	const n = 1_000_000
	in := beats(b)
	in.To = at(n - 1)
	in.Settled = in.To
	in.notes = func(yield func(history.Note) bool) {
		for i := range n {
			slot := at(float64(i))
			if !yield(history.Note{Schedule: "beat", Slot: slot, Word: "done", Attempt: 1, Claimed: slot}) {
				return
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := judge(in); r.Counts[OnTime] != n {
			b.Fatal(r.Counts)
		}
	}
}

// fataler is a test, of this package or of rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
}
