package admin_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// failing returns a dispatcher whose tasks die of the error in their payload.
func failing(t *testing.T, rdb *redis.Client) *onbeat.Dispatcher {
	t.Helper()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: testredis.Namespace(t), Release: "v1", Drain: 50 * time.Millisecond})
	must(t, err)
	die := handlers.Func(func(_ context.Context, x *task.Task) error { return handlers.Dead(errors.New(string(x.Payload))) })
	must(t, d.Handle("mail", die))
	must(t, d.Handle("bill", die))
	return d
}

func TestFailureGroup_namesSomeSchedules(t *testing.T) {
	t.Parallel()
	sum := admin.FailureGroup{Tasks: 1, Schedules: []string{"a"}}
	for i := range 12 {
		sum.Add(admin.FailureGroup{Tasks: 2, Schedules: []string{"a", fmt.Sprint(i)}})
	}
	if sum.Tasks != 25 || fmt.Sprint(sum.Schedules) != "[a 0 1 2 3 4 5 6 7 8]" || !sum.MoreSchedules {
		t.Errorf("%+v", sum)
	}
}

func TestTasks_groupsTheDeadByWhatTheyDiedOf(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
			d := failing(t, rdb)
			a, ctx := of(d), t.Context()
			run(t, d)
			add := func(typ, id, text string) {
				_, err := a.Tasks.Enqueue(ctx, []*task.Task{task.New(typ, text, task.ID(id))})
				must(t, err)
				await(t, a, id, admin.TaskDead)
			}
			for i := range 3 {
				add("mail", fmt.Sprintf("m%d", i), fmt.Sprintf("no order %d", 10_000+i))
			}
			add("bill", "b", "no order 77777")
			add("mail", "other", "no paper")

			list, err := a.Tasks.Failures(ctx, admin.FailureQuery{})
			must(t, err)
			var got []string
			for _, g := range list.Items {
				got = append(got, fmt.Sprintf("%s %s %d %s", g.Type, g.Error, g.Tasks, g.Last))
				if g.Oldest.IsZero() || g.Newest.Before(g.Oldest) {
					t.Errorf("%+v", g)
				}
			}
			want := []string{`mail "no order …" 3 m2`, `bill "no order …" 1 b`, `mail "no paper" 1 other`}
			if fmt.Sprint(got) != fmt.Sprint(want) || list.Next != "" {
				t.Errorf("%q, next %q, want %q", got, list.Next, want)
			}

			some, err := a.Tasks.Failures(ctx, admin.FailureQuery{TaskFilter: admin.TaskFilter{Type: "mail", Error: "*paper*"}})
			if err != nil || len(some.Items) != 1 || some.Items[0].Last != "other" {
				t.Errorf("%+v, %v", some.Items, err)
			}
			for pattern, want := range map[string]int{
				`"no order 5"`: 0, `"no order 90210"`: 4, "no": 0, `"no*`: 5, `*paper"`: 1, `*paper`: 0, `"no*der*"`: 4, `*r*o*`: 0, "*": 5, `*"no paper"*`: 1,
			} {
				page, err := a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{Error: pattern}})
				if err != nil || len(page.Items) != want {
					t.Errorf("%s: %d tasks, want %d, %v", pattern, len(page.Items), want, err)
				}
			}
			b := admin.Bulk{Action: admin.DeleteTasks, Filter: admin.TaskFilter{Type: "mail", Error: list.Items[0].Error}}
			if done, err := a.Tasks.Bulk(ctx, b); err != nil || done.Matched != 3 || done.Changed != 3 {
				t.Errorf("%+v, %v", done, err)
			}
			left, err := a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskDead}})
			if err != nil || len(left.Items) != 2 {
				t.Errorf("%d are left, %v", len(left.Items), err)
			}
		})
	})
}
