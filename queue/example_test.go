package queue_test

import (
	"fmt"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

func ExampleParseLane() {
	l := queue.LaneOf(task.New("invoice.send", nil, task.WithPriority(task.High)))
	fmt.Println(l)
	l, err := queue.ParseLane("mail|normal|welcome")
	fmt.Println(l.Queue, l.Type, err)
	fmt.Println(queue.Partition{Namespace: "shop"}.Keys().Due(l))
	// Output:
	// default|high|invoice.send
	// mail welcome <nil>
	// onbeat:{shop}:due:mail|normal|welcome
}

func ExampleParseNote() {
	n := queue.ParseNote("nightly@1700000000000 done 1 1700000000012")
	fmt.Println(n.Schedule, n.Slot.Format("15:04:05"), n.Word, n.Claimed.Sub(n.Slot))
	n = queue.ParseNote("nightly@1700000000000..1700000060000 missed 61 outage")
	fmt.Println(n.Schedule, n.Word, n.Count, n.Why)
	// Output:
	// nightly 22:13:20 done 12ms
	// nightly missed 61 outage
}
