package audit_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat/audit"
	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/schedule"
)

func ExampleJudge() {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	minutely, err := audit.NewPeriod(schedule.Rule{Every: time.Minute}, start)
	if err != nil {
		fmt.Println(err)
		return
	}
	minute := func(k int) int64 { return start.Add(time.Duration(k) * time.Minute).UnixMilli() }

	report := audit.Judge(audit.Input{
		Schedule: "warm-cache",
		Periods:  []audit.Period{minutely},
		From:     start, To: start.Add(5 * time.Minute), Settled: start.Add(5 * time.Minute),
		Notes: slices.Values([]history.Note{
			history.Parse(fmt.Sprintf("warm-cache@%d done 1 %d", minute(0), minute(0)+3)),
			history.Parse(fmt.Sprintf("warm-cache@%d lost 1 %d", minute(1), minute(1)+2)), // its instance died
			history.Parse(fmt.Sprintf("warm-cache@%d done 2 %d", minute(1), minute(1)+5200)),
			history.Parse(fmt.Sprintf("warm-cache@%d..%d missed 2 policy once", minute(2), minute(3))),
			history.Parse(fmt.Sprintf("warm-cache@%d done 1 %d", minute(4), minute(4)+40_000)),
		}),
	})
	for v := audit.OnTime; v <= audit.OffGrid; v++ {
		if n := report.Counts[v]; n > 0 {
			fmt.Println(v, n)
		}
	}
	fmt.Println("broken:", report.Broken())
	// Output:
	// on_time 2
	// late 1
	// missed 2
	// pending 1
	// broken: false
}
