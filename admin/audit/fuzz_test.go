package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/schedule"
)

// A history that anybody may have written in is judged to the end, and every slot has a verdict.
func FuzzJudge(f *testing.F) {
	f.Add("s@10000 done 1 10001\ns@20000..30000 missed 2 outage\ns@40000 failed 1 40001\ns@40000 done 2 40009", int64(60_000))
	f.Add("s@5..9999999999999 missed 999999\ns@-1 done 1 1\ns@15000 done 1 1\ns@9223372036854775807 lost", int64(5_000))
	f.Add("s@30000..10000 skipped -5\n\n \ns was x", int64(0))
	f.Fuzz(func(t *testing.T, notes string, to int64) {
		if to < 0 || to > 600_000 {
			return
		}
		p, err := newPeriod(schedule.Every(10*time.Second), time.UnixMilli(0))
		if err != nil {
			t.Fatal(err)
		}
		in := question{
			input: input{
				Schedule: "s", Periods: []period{p}, From: time.UnixMilli(0), To: time.UnixMilli(to), Settled: time.UnixMilli(to), MaxSlots: 1000,
			},
			notes: func(yield func(history.Note) bool) {
				for line := range strings.SplitSeq(notes, "\n") {
					n := history.Parse(line)
					n.At = time.UnixMilli(to)
					if !yield(n) {
						return
					}
				}
			},
		}
		began := time.Now()
		judge(in)
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("%q took %v", notes, took)
		}
		for line := range strings.SplitSeq(notes, "\n") {
			if history.Before(line, line) {
				t.Errorf("%q comes before itself", line)
			}
		}
	})
}
