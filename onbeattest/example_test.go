package onbeattest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/onbeattest"
	"github.com/onbeat/onbeat/task"
)

// inTest stands for the *testing.T that a test has, and an example has not.
type inTest struct{ testing.TB }

func (inTest) Helper()                  {}
func (inTest) Context() context.Context { return context.Background() }

func ExampleRun() {
	var t inTest
	report := handlers.Func(func(ctx context.Context, run *task.Task) error {
		if run.Attempt == 1 {
			return handlers.RetryAfter(errors.New("the books are not closed"), 10*time.Minute)
		}
		handlers.Output(ctx, "report of "+run.Slot.Format(time.DateOnly))
		return nil
	})
	run := task.New("report.build", nil)
	run.Schedule, run.Slot = "nightly", time.Date(2030, 1, 31, 2, 0, 0, 0, time.UTC)
	first := onbeattest.Run(t, report, run)
	fmt.Println(first.State, "after", first.After, "for:", first.Err)
	run.Attempt = 2
	second := onbeattest.Run(t, report, run)
	fmt.Println(second.State, "with:", second.Output)
	// Output:
	// retried after 10m0s for: the books are not closed
	// done with: report of 2030-01-31
}
