package consumer_test

import (
	"fmt"

	"github.com/onbeat/onbeat/consumer"
)

func ExampleConfig_Validate() {
	fmt.Println(consumer.Config{Queues: map[string]int{"mail": 3, "reports": 1}, Strict: true}.Validate())
	fmt.Println(consumer.Config{Limits: map[string]int{"report.build": 0}}.Validate())
	// Output:
	// <nil>
	// limits.report.build "0": out of range (1 or more)
}
