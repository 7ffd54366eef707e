package admin_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// An errand is begun, looked at, stopped and resumed in the same way on the spot and over HTTP, and does what its filter says.
func TestErrands_doWhatTheFilterSays(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
			d := dispatcher(t, rdb)
			a, ctx := of(d), t.Context()
			for i := range 20 {
				enqueue(t, a, []string{"a", "b"}[i%2], fmt.Sprint("t", i))
			}
			begun, err := a.Errands.Begin(ctx, admin.ErrandSpec{Action: admin.CancelTasks, Filter: admin.TaskFilter{Type: "a"}, About: 10})
			must(t, err)
			if some, err := d.Admin().Worker.WorkErrand(ctx); err != nil || !some && a.Worker != nil {
				t.Fatal(some, err)
			}
			var e admin.Errand
			testredis.Eventually(t, patience, func() bool {
				e, err = a.Errands.Get(ctx, begun.ID)
				return err == nil && e.State == queue.ErrandDone
			}, "it is done")
			if e.Matched != 10 || e.Changed != 10 || e.Unreadable != 0 || e.About != 10 || e.Filter.Type != "a" || e.Action != admin.CancelTasks {
				t.Errorf("%+v", e)
			}
			if n, err := a.Activity.Counts(ctx); err != nil || n.Due != 10 {
				t.Errorf("%+v, %v", n, err)
			}
			list, err := a.Errands.List(ctx)
			if err != nil || len(list.Items) != 1 || list.Items[0] != e {
				t.Errorf("%+v, %v, want %+v", list, err, e)
			}
			for _, ask := range []func() (admin.Errand, error){
				func() (admin.Errand, error) { return a.Errands.Stop(ctx, e.ID) },
				func() (admin.Errand, error) { return a.Errands.Resume(ctx, e.ID) },
			} {
				if again, err := ask(); err != nil || again != e {
					t.Errorf("%+v, %v", again, err)
				}
			}
		})
	})
}

func TestErrands_refuseWhatBulkRefuses(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		a, ctx := of(dispatcher(t, testredis.Client(t))), t.Context()
		for _, s := range []admin.ErrandSpec{
			{}, {Action: "forget"}, {Action: admin.RetryTasks, Filter: admin.TaskFilter{State: task.Due}}, {Action: admin.RetryTasks, About: -1},
		} {
			if _, err := a.Errands.Begin(ctx, s); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("%+v: %v", s, err)
			}
		}
		for name, err := range map[string]error{
			"get": second(a.Errands.Get(ctx, "none")), "stop": second(a.Errands.Stop(ctx, "none")), "resume": second(a.Errands.Resume(ctx, "none")),
			"get nothing": second(a.Errands.Get(ctx, "")),
		} {
			if !errors.Is(err, queue.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
