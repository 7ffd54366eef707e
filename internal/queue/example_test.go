package queue_test

import (
	"fmt"

	"github.com/onbeat/onbeat/internal/queue"
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
