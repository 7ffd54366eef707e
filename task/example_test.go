package task_test

import (
	"fmt"
	"time"

	"github.com/onbeat/onbeat/task"
)

func Example() {
	t := task.New("invoice.send", map[string]int{"number": 42},
		task.ID("invoice-42"), task.In(10*time.Minute), task.MaxAttempts(3))
	fmt.Println(t.Validate(task.Limits{}))

	var got task.Task
	err := task.Decode(string(task.Encode(nil, t)), &got)
	fmt.Println(got.Type, string(got.Payload), got.AttemptsAllowed(), err)
	// Output:
	// <nil>
	// invoice.send {"number":42} 3 <nil>
}

func ExampleTask_Validate() {
	fmt.Println(task.New("send invoice", nil).Validate(task.Limits{}))
	// Output:
	// type "send invoice": has a character that a name cannot have (1 to 128 letters, digits or - _ . : / +)
}

func ExampleBackoff_Ceiling() {
	b := task.Backoff{Base: time.Second, Cap: 10 * time.Second}
	for failures := 1; failures <= 5; failures++ {
		fmt.Print(b.Ceiling(failures), " ")
	}
	// Output:
	// 1s 2s 4s 8s 10s
}

func ExampleSlotID() {
	id := task.SlotID("nightly-report", time.UnixMilli(1_700_000_000_000))
	fmt.Println(id)
	fmt.Println(task.ParseSlotID(id))
	// Output:
	// nightly-report@1700000000000
	// nightly-report 2023-11-14 22:13:20 +0000 UTC true
}
