package onbeattest

import (
	"context"
	"testing"
	"time"

	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// State is what becomes of a task after a run.
type State string

// The states of an [Outcome].
const (
	Done    State = "done"    // the handler returned no error
	Retried State = "retried" // it failed, and has attempts left
	Dead    State = "dead"    // it failed for the last time, or returned [handlers.Dead]
	Refused State = "refused" // Enqueue would not take the task: the handler did not run
)

// Outcome is what became of one run.
type Outcome struct {
	State State
	// Err is the error of the handler, or why the task was refused. After a panic it is a [*handlers.PanicError].
	Err error
	// After is the delay until the next attempt, if the task is retried: that of [handlers.RetryAfter], or the longest that the backoff
	// of the task takes. The dispatcher picks a shorter one at random.
	After time.Duration
	// Output is what the handler passed to [handlers.Output], up to 64 KiB.
	Output string
}

const mostOutput = 64 << 10

// Run runs a handler once, as an instance would, and returns what becomes of the task. First it checks the task and its payload as
// Enqueue does. The context of the run ends after the timeout of the task, and knows the task (see [handlers.FromContext]).
//
// The test chooses the run by the fields of the task. Left empty, Attempt is 1, and ID and Fence are some. For the run of a slot, set
// Schedule and Slot: its ID then is that of the slot. Run works on a copy.
//
// For a handler with its middleware, pass handlers.Func(mux.Serve).
func Run(t testing.TB, h handlers.TaskHandler, one *task.Task) Outcome {
	t.Helper()
	run := *one
	if err := check(h, &run); err != nil {
		return Outcome{State: Refused, Err: err}
	}
	fill(&run)
	ctx := handlers.KeepOutput(handlers.NewContext(handlers.WithNamespace(t.Context(), "onbeattest"), &run), mostOutput)
	ctx, cancel := context.WithTimeoutCause(ctx, run.RunTimeout(), consumer.ErrTimeout)
	defer cancel()
	out := Outcome{State: Done}
	handlers.Do(ctx, h, &run, func(err error) { out.Err = err })
	out.Output = handlers.Kept(ctx, &run)
	if out.Err == nil {
		return out
	}
	failed := queue.Fail(&run, task.Failure{Attempt: run.Attempt}, handlers.IsDead(out.Err))
	if failed.Dead {
		out.State = Dead
		return out
	}
	out.State = Retried
	after, given := handlers.RetryDelay(out.Err)
	if !given {
		after = run.Backoff.Ceiling(failed.Attempts)
	}
	out.After = after
	return out
}

func check(h handlers.TaskHandler, run *task.Task) error {
	if err := run.Validate(task.Limits{}); err != nil {
		return err
	}
	if c, ok := handlers.As[handlers.PayloadChecker](h); ok {
		return c.CheckPayload(run.Payload)
	}
	return nil
}

// fill sets what the dispatcher would have set.
func fill(run *task.Task) {
	now := time.Now()
	switch {
	case run.ID != "":
	case run.Schedule != "" && !run.Slot.IsZero():
		run.ID = task.SlotID(run.Schedule, run.Slot)
	default:
		run.ID = task.NewID(now)
	}
	run.Attempt = max(run.Attempt, 1)
	run.Attempts = run.Attempt - 1
	run.Fence = max(run.Fence, 1)
	if run.Claimed.IsZero() {
		run.Claimed = now
	}
}
