package history_test

import (
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/task"
)

func Example() {
	slot := time.UnixMilli(1700000000000)
	run := &task.Task{ID: task.SlotID("report", slot), Schedule: "report", Attempt: 1, Claimed: slot.Add(3 * time.Millisecond)}
	n := history.Parse(history.Run(run, history.Done, 40*time.Millisecond, ""))
	fmt.Println(n.Schedule, n.Word, n.Claimed.Sub(n.Slot))
	// Output: report done 3ms
}

func ExampleParse() {
	n := history.Parse("nightly@1700000000000 done 1 1700000000012")
	fmt.Println(n.Schedule, n.Slot.Format("15:04:05"), n.Word, n.Claimed.Sub(n.Slot))
	n = history.Parse("nightly@1700000000000..1700000060000 missed 61 outage")
	fmt.Println(n.Schedule, n.Word, n.Count, n.Why)
	// Output:
	// nightly 22:13:20 done 12ms
	// nightly missed 61 outage
}
