package admin_test

import (
	"context"
	"encoding/json"
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

const patience = time.Minute

// dispatcher returns one whose tasks of type "bad" fail for good, and of type "long" run until they are cancelled.
func dispatcher(t *testing.T, rdb *redis.Client) *onbeat.Dispatcher {
	t.Helper()
	return named(t, rdb, testredis.Namespace(t))
}

func named(t *testing.T, rdb *redis.Client, namespace string) *onbeat.Dispatcher {
	t.Helper()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: namespace, Release: "v1", Drain: 50 * time.Millisecond})
	must(t, err)
	must(t, d.Handle("bad", handlers.Func(func(context.Context, *task.Task) error { return handlers.Dead(errors.New("it is bad")) })))
	must(t, d.Handle("long", handlers.Func(func(ctx context.Context, _ *task.Task) error { <-ctx.Done(); return ctx.Err() })))
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run lets the dispatcher work until the test ends.
func run(t *testing.T, d *onbeat.Dispatcher) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func enqueue(t *testing.T, a *admin.Admin, typ, id string, opts ...task.Option) {
	t.Helper()
	done, err := a.Tasks.Enqueue(t.Context(), []*task.Task{task.New(typ, map[string]int{"n": 1}, append(opts, task.ID(id))...)})
	if err != nil || len(done) != 1 || done[0] != (admin.Enqueued{ID: id}) {
		t.Fatalf("%+v, %v", done, err)
	}
}

// await waits until a task is in a state.
func await(t *testing.T, a *admin.Admin, id string, state admin.TaskState) {
	t.Helper()
	testredis.Eventually(t, patience, func() bool {
		found, err := a.Tasks.Get(t.Context(), id)
		return err == nil && found.State == state
	}, "%s is %s", id, state)
}

func TestTasks_changeByState(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
			d := dispatcher(t, rdb)
			a, ctx := of(d), t.Context()
			run(t, d)
			enqueue(t, a, "bad", "dead")
			enqueue(t, a, "long", "running")
			enqueue(t, a, "other", "waiting")
			enqueue(t, a, "other", "planned", task.In(time.Hour))
			await(t, a, "dead", admin.TaskDead)
			await(t, a, "running", admin.TaskRunning)

			found, err := a.Tasks.Get(ctx, "dead")
			must(t, err)
			if found.Type != "bad" || string(found.Payload) != `{"n":1}` || len(found.Failures) != 1 || found.Timeout != "30m" || found.Queue != "default" {
				t.Errorf("%+v", found)
			}
			var state *admin.StateError
			if was, err := a.Tasks.Cancel(ctx, "dead"); !errors.As(err, &state) || state.State != admin.TaskDead || was != admin.TaskDead {
				t.Errorf("cancel of a dead one: %s, %v", was, err)
			}
			if _, err := a.Tasks.Retry(ctx, "planned", false); !errors.As(err, &state) || state.State != admin.TaskPlanned || err.Error() != `task "planned" is planned, not dead` {
				t.Errorf("retry of a planned one: %v", err)
			}
			must(t, second(a.Tasks.Retry(ctx, "dead", false)))
			testredis.Eventually(t, patience, func() bool {
				f, err := a.Tasks.Get(ctx, "dead")
				return err == nil && f.State == admin.TaskDead && len(f.Failures) == 2
			}, "it ran again")
			if was, err := a.Tasks.Cancel(ctx, "running"); err != nil || was != admin.TaskRunning {
				t.Errorf("%s, %v", was, err)
			}
			for id, want := range map[string]admin.TaskState{"waiting": admin.TaskWaiting, "planned": admin.TaskPlanned, "dead": admin.TaskDead} {
				if was, err := a.Tasks.Delete(ctx, id); err != nil || was != want {
					t.Errorf("delete %s: %s, %v", id, was, err)
				}
				if _, err := a.Tasks.Get(ctx, id); !errors.Is(err, task.ErrNotFound) {
					t.Errorf("%s is there: %v", id, err)
				}
			}
			for name, err := range map[string]error{
				"get": second(a.Tasks.Get(ctx, "none")), "cancel": second(a.Tasks.Cancel(ctx, "none")),
				"retry": second(a.Tasks.Retry(ctx, "none", false)), "delete": second(a.Tasks.Delete(ctx, "none")),
			} {
				if !errors.Is(err, task.ErrNotFound) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	})
}

// Each task has one state: the list of that state has it, and no other list; the counts agree.
func TestTasks_haveOneStateEach(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
			d := dispatcher(t, rdb)
			a, ctx := of(d), t.Context()
			must(t, d.Handle("flaky", handlers.Func(func(context.Context, *task.Task) error { return handlers.RetryAfter(errors.New("not now"), time.Hour) })))
			must(t, d.Handle("good", handlers.Func(func(context.Context, *task.Task) error { return nil })))
			run(t, d)
			want := map[admin.TaskState]string{
				admin.TaskRunning: "long", admin.TaskWaiting: "late", admin.TaskRetrying: "fails", admin.TaskPlanned: "later", admin.TaskDead: "dies", admin.TaskDone: "kept",
			}
			enqueue(t, a, "long", "long")
			enqueue(t, a, "other", "late", task.At(time.Now().Add(-time.Hour)))
			enqueue(t, a, "flaky", "fails")
			enqueue(t, a, "other", "later", task.In(time.Hour))
			enqueue(t, a, "bad", "dies")
			enqueue(t, a, "good", "kept", task.Keep(time.Hour))
			for state, id := range want {
				await(t, a, id, state)
			}
			for state, id := range want {
				page, err := a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: state}})
				if err != nil || len(page.Items) != 1 || page.Items[0].ID != id || page.Items[0].State != state || page.Items[0].Overdue != (id == "late") {
					t.Errorf("%s: %+v, %v", state, page, err)
				}
			}
			page, err := a.Tasks.List(ctx, admin.TaskQuery{})
			must(t, err)
			for _, x := range page.Items {
				if want[x.State] != x.ID {
					t.Errorf("among all: %s is %s", x.ID, x.State)
				}
			}
			page, err = a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskDead}, Brief: true})
			if err != nil || page.Items[0].Payload != nil || len(page.Items[0].Failures) != 1 {
				t.Errorf("in brief: %+v, %v", page, err)
			}
			page, err = a.Tasks.List(ctx, admin.TaskQuery{})
			must(t, err)
			if n, err := a.Activity.Counts(ctx); err != nil || len(page.Items) != len(want) || n.Running != 1 || n.Waiting != 1 || n.Overdue != 1 || n.Later != 2 || n.Dead != 1 || n.Done != 1 {
				t.Errorf("%d tasks, %+v, %v", len(page.Items), n, err)
			}
			sum, err := a.Tasks.Bulk(ctx, admin.Bulk{Action: admin.CancelTasks, Filter: admin.TaskFilter{State: admin.TaskRetrying}})
			if err != nil || sum.Matched != 1 || sum.Changed != 1 {
				t.Errorf("%+v, %v", sum, err)
			}
			if was, err := a.Tasks.Cancel(ctx, "later"); err != nil || was != admin.TaskPlanned {
				t.Errorf("%s, %v", was, err)
			}
			await(t, a, "late", admin.TaskWaiting)
		})
	})
}

func second[T any](_ T, err error) error { return err }

func TestTasks_enqueueSaysWhatTookThePlace(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		a := of(dispatcher(t, testredis.Client(t)))
		enqueue(t, a, "x", "one", task.Unique("k", time.Hour))
		done, err := a.Tasks.Enqueue(t.Context(), []*task.Task{
			task.New("x", nil, task.ID("one")), task.New("x", nil, task.ID("two"), task.Unique("k", time.Hour)), task.New("x", nil, task.ID("three")),
		})
		if err != nil || done[0].There() == nil || done[1].There() == nil ||
			*done[0].There() != (task.Refused{By: "id", ID: "one"}) || *done[1].There() != (task.Refused{By: "unique", ID: "one"}) ||
			done[2] != (admin.Enqueued{ID: "three"}) {
			t.Errorf("%+v, %v", done, err)
		}
		if _, err := a.Tasks.Enqueue(t.Context(), []*task.Task{task.New("a b", nil)}); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%v", err)
		}
	})
}

// Pages of tasks of all states follow one another, and each task is on one of them.
func TestTasks_listGoesOnFromStateToState(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
			d := dispatcher(t, rdb)
			a, ctx := of(d), t.Context()
			want := map[string]bool{}
			for i := range 7 {
				for _, typ := range []string{"bad", "long", "other"} {
					id := fmt.Sprint(typ, i)
					want[id] = true
					enqueue(t, a, typ, id)
				}
			}
			run(t, d)
			testredis.Eventually(t, patience, func() bool {
				n, err := a.Activity.Counts(ctx)
				return err == nil && n.Dead == 7 && n.Running == 7 && n.Waiting == 7
			}, "seven of each state")
			for _, limit := range []int{1, 3, 7, 14, 100} {
				seen, pages := map[string]bool{}, 0
				for after := ""; ; pages++ {
					page, err := a.Tasks.List(ctx, admin.TaskQuery{Limit: limit, After: after})
					must(t, err)
					if len(page.Items) > limit {
						t.Errorf("%d on a page of %d", len(page.Items), limit)
					}
					for _, x := range page.Items {
						if seen[x.ID] || !want[x.ID] {
							t.Errorf("limit %d: %s is there twice, or is not one of them", limit, x.ID)
						}
						seen[x.ID] = true
					}
					if after = page.Next; after == "" {
						break
					}
				}
				if len(seen) != len(want) {
					t.Errorf("limit %d: %d of %d tasks on %d pages", limit, len(seen), len(want), pages)
				}
			}
			for _, after := range []string{"x", "due", "waiting.", "nowhere.", "dead.%"} {
				if _, err := a.Tasks.List(ctx, admin.TaskQuery{After: after}); !errors.Is(err, task.ErrInvalid) {
					t.Errorf("after %q: %v", after, err)
				}
			}
			if _, err := a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: "gone"}}); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("%v", err)
			}
		})
	})
}

// roundTrip returns a value as a client reads it from JSON, which must be the same value.
func roundTrip[T any](t *testing.T, v T) (back T) {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	again, err := json.Marshal(back)
	must(t, err)
	if string(again) != string(b) {
		t.Errorf("%s\nbecomes\n%s", b, again)
	}
	return back
}
