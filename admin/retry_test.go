package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
)

// A dead slot is retried because its schedule was mended: so it gets what the schedule says now.
func TestTasks_retryOfASlot(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		d := dispatcher(t, testredis.Client(t))
		a, ctx := of(d), t.Context()
		s := producer.Schedule{
			Name: "s", Rule: schedule.Rule{Every: 50 * time.Millisecond, MaxRuns: 4, Missed: schedule.MissedAll}, Task: "bad", MaxAttempts: 1, Payload: json.RawMessage(`{"n":1}`),
		}
		must(t, second(a.Schedules.Apply(ctx, s)))
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- d.Run(running) }()
		var dead admin.List[admin.Task]
		testredis.Eventually(t, patience, func() bool {
			dead, _ = a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskDead, Schedule: "s"}})
			return len(dead.Items) == 4
		}, "its slots are dead")
		stop()
		must(t, <-ended)
		s.Payload, s.Task, s.Timeout = json.RawMessage(`{"n":2}`), "mended", 2*time.Minute
		must(t, second(a.Schedules.Apply(ctx, s)))
		retry := func(i int, asItWas bool, result, payload string) {
			t.Helper()
			was := dead.Items[i]
			got, err := a.Tasks.Retry(ctx, was.ID, asItWas)
			is, err2 := a.Tasks.Get(ctx, was.ID)
			if errors.Join(err, err2) != nil || got != result || string(is.Payload) != payload || is.State != admin.TaskWaiting || !is.Slot.Equal(was.Slot) || is.Attempts != 0 || len(is.Failures) != 1 {
				t.Errorf("%q, %v: %+v", got, err, is)
			}
			if anew := result == admin.DueAnew; anew != (is.Type == "mended") || anew != (is.Timeout == "2m") {
				t.Errorf("%s: type %s, timeout %s", result, is.Type, is.Timeout)
			}
		}
		retry(0, false, admin.DueAnew, `{"n":2}`)
		retry(1, true, admin.DueAsItWas, `{"n":1}`)
		must(t, second(a.Schedules.Delete(ctx, "s")))
		retry(2, false, admin.DueOfNothing, `{"n":1}`)
		must(t, second(a.Schedules.Restore(ctx, "s")))
		if n, err := a.Tasks.Bulk(ctx, admin.Bulk{Action: admin.RetryAsWas, Filter: admin.TaskFilter{Schedule: "s"}, DryRun: true}); err != nil || n.Matched != 1 {
			t.Errorf("%+v, %v", n, err)
		}
		n, err := a.Tasks.Bulk(ctx, admin.Bulk{Action: admin.RetryTasks, Filter: admin.TaskFilter{Schedule: "s"}})
		is, err2 := a.Tasks.Get(ctx, dead.Items[3].ID)
		if errors.Join(err, err2) != nil || n.Changed != 1 || string(is.Payload) != `{"n":2}` || is.State != admin.TaskWaiting {
			t.Errorf("in bulk: %+v, %v: %+v", n, err, is)
		}
	})
}
