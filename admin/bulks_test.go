package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

var cancelJobs = admin.BulkSpec{Action: admin.CancelTasks, Filter: admin.TaskFilter{Type: "job"}}

// jobs returns a dispatcher with n tasks that are due much later, and the queue of its namespace.
func jobs(t *testing.T, rdb *redis.Client, n int) (*onbeat.Dispatcher, *queue.Queue) {
	t.Helper()
	name := testredis.Namespace(t)
	list := make([]*task.Task, n)
	for i := range list {
		list[i] = task.New("job", nil, task.In(time.Hour))
	}
	d := instanceOf(t, rdb, name, 0)
	_, err := d.EnqueueAll(t.Context(), list)
	must(t, err)
	q, err := queue.New(rdb, queue.Partition{Namespace: name}, queue.Caps{})
	must(t, err)
	return d, q
}

// instanceOf returns one that counts as lost a lease after its last sign of life.
func instanceOf(t *testing.T, rdb *redis.Client, name string, lease time.Duration) *onbeat.Dispatcher {
	t.Helper()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: name, Release: "v1", Lease: lease, Drain: time.Hour})
	must(t, err)
	return d
}

// started lets an instance work until stop is called, and waits for its end.
func started(t *testing.T, d *onbeat.Dispatcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = d.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// awaitBulk waits until a bulk action is as it should be.
func awaitBulk(t *testing.T, a *admin.Admin, id string, is func(b admin.BulkTask) bool) (b admin.BulkTask) {
	t.Helper()
	testredis.Eventually(t, patience, func() bool {
		var err error
		b, err = a.Bulks.Get(t.Context(), id)
		return err == nil && is(b)
	}, "the bulk action %s is as it should be", id)
	return b
}

func in(s admin.BulkState) func(admin.BulkTask) bool {
	return func(b admin.BulkTask) bool { return b.State == s }
}

// A bulk action is begun, looked at, stopped and resumed in the same way on the spot and over HTTP. It leaves the dispatcher's own tasks
// alone, and so itself.
func TestBulks_doWhatTheFilterSays(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
			name := testredis.Namespace(t)
			d := named(t, rdb, name)
			a, ctx := of(d), t.Context()
			for i := range 20 {
				enqueue(t, a, []string{"long", "b"}[i%2], fmt.Sprint("t", i), task.In(time.Hour))
			}
			enqueue(t, a, "long", "runs")
			q, err := queue.Of(rdb, name)
			must(t, err)
			_, _, err = q.Enqueue(ctx, []*task.Task{{ID: "onbeat.notify:x", Type: "onbeat.notify"}}, true)
			must(t, err)
			run(t, d)
			await(t, a, "runs", admin.TaskRunning)
			begun, err := a.Bulks.Begin(ctx, admin.BulkSpec{Action: admin.CancelTasks, Filter: admin.TaskFilter{Queue: "default"}, About: 21, Reason: "a test, of the state"})
			must(t, err)
			b := awaitBulk(t, a, begun.ID, in(admin.BulkDone))
			if b.Matched != 21 || b.Changed != 21 || b.Unreadable != 0 || b.About != 21 || b.Reason != "a test, of the state" || b.Filter.Queue != "default" || b.Action != admin.CancelTasks {
				t.Errorf("%+v", b)
			}
			events, err := a.Activity.Events(ctx, admin.EventQuery{})
			must(t, err)
			told := map[string]string{}
			for _, e := range events.Items {
				told[e.Event] = e.Fields["reason"]
			}
			for _, kind := range []string{"bulk begun", "tasks changed", "bulk done"} {
				if told[kind] != b.Reason {
					t.Errorf("the event %q has the reason %q", kind, told[kind])
				}
			}
			await(t, a, "onbeat.notify:x", admin.TaskWaiting)
			list, err := a.Bulks.List(ctx)
			if err != nil || len(list.Items) != 1 || list.Items[0] != b {
				t.Errorf("%+v, %v, want %+v", list, err, b)
			}
			for _, ask := range []func(context.Context, string) (admin.BulkTask, error){a.Bulks.Stop, a.Bulks.Resume} {
				if again, err := ask(ctx, b.ID); err != nil || again != b {
					t.Errorf("%+v, %v", again, err)
				}
			}
		})
	})
}

func TestBulks_refuseWhatTheyCannotDo(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		d := dispatcher(t, testredis.Client(t))
		a, ctx := of(d), t.Context()
		for _, s := range []admin.BulkSpec{
			{}, {Action: "forget"}, {Action: admin.RetryTasks, Filter: admin.TaskFilter{State: admin.TaskWaiting}}, {Action: admin.RetryTasks, About: -1},
			{Action: admin.CancelTasks, Filter: admin.TaskFilter{Type: task.BulkType}}, {Action: admin.CancelTasks, Reason: "a\tb"},
		} {
			if _, err := a.Bulks.Begin(ctx, s); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("%+v: %v", s, err)
			}
		}
		for name, err := range map[string]error{
			"get": second(a.Bulks.Get(ctx, "none")), "stop": second(a.Bulks.Stop(ctx, "none")), "resume": second(a.Bulks.Resume(ctx, "none")),
			"get nothing": second(a.Bulks.Get(ctx, "")),
		} {
			if !errors.Is(err, task.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, x := range []*task.Task{task.New(task.BulkType, nil), task.New("job", nil, task.ID(task.BulkType+":a:b"))} {
			if _, err := d.Enqueue(ctx, x); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("%s %q: %v", x.Type, x.ID, err)
			}
		}
		if err := d.Schedule("s", schedule.Every(time.Hour), task.BulkType, nil); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("a schedule: %v", err)
		}
	})
}

// An instance that drains hands a bulk action over at once, though tasks may run on for an hour, and each task is met once. The next
// instance is killed: another goes on where that one was.
func TestBulks_goOnWhenTheirInstanceLeaves(t *testing.T) {
	t.Parallel()
	const n = 12_000
	rdb := testredis.Real(t)
	d, q := jobs(t, rdb, n)
	a := d.Admin()
	leave := started(t, d)
	begun, err := a.Bulks.Begin(t.Context(), cancelJobs)
	must(t, err)
	awaitBulk(t, a, begun.ID, func(b admin.BulkTask) bool { return b.Changed > 0 })
	leave()
	left, err := a.Bulks.Get(t.Context(), begun.ID)
	if err != nil || left.State != admin.BulkWaiting || left.Matched != left.Changed || left.Changed == n || left.AtLeast {
		t.Fatalf("%+v, %v", left, err)
	}

	own := redis.NewClient(rdb.Options())
	started(t, instanceOf(t, own, q.Namespace(), time.Second))
	awaitBulk(t, a, begun.ID, func(b admin.BulkTask) bool { return b.Changed > left.Changed })
	must(t, own.Close()) // it can note nothing more
	lost, err := a.Bulks.Get(t.Context(), begun.ID)
	if err != nil || lost.State != admin.BulkRunning {
		t.Fatalf("%+v, %v", lost, err)
	}
	started(t, instanceOf(t, rdb, q.Namespace(), 0))
	done := awaitBulk(t, a, begun.ID, in(admin.BulkDone))
	if done.Changed < lost.Changed || done.Changed < n-queue.MaxBatch || !done.AtLeast { // the page during which it was lost is not in the sum
		t.Errorf("%+v after %+v", done, lost)
	}
	if counts, err := a.Activity.Counts(t.Context()); err != nil || counts.Waiting+counts.Later != 0 {
		t.Errorf("%+v, %v", counts, err)
	}
}

func TestBulks_stopAndGoOn(t *testing.T) {
	t.Parallel()
	const n = 6500
	d, _ := jobs(t, testredis.Real(t), n)
	a, ctx := d.Admin(), admin.By(t.Context(), "ann")
	started(t, d)
	begun, err := a.Bulks.Begin(ctx, cancelJobs)
	must(t, err)
	awaitBulk(t, a, begun.ID, func(b admin.BulkTask) bool { return b.Changed > 0 })
	stopped, err := a.Bulks.Stop(admin.By(ctx, "bob"), begun.ID)
	if err != nil || stopped.State != admin.BulkStopped || stopped.StoppedBy != "bob" || stopped.By != "ann" {
		t.Fatalf("%+v, %v", stopped, err)
	}
	testredis.Eventually(t, patience, func() bool {
		running, err := a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskRunning}})
		return err == nil && len(running.Items) == 0
	}, "its task has ended")
	if b, err := a.Bulks.Get(ctx, begun.ID); err != nil || b.State != admin.BulkStopped || b.Changed == n {
		t.Errorf("%+v, %v", b, err)
	}
	must(t, second(a.Bulks.Resume(ctx, begun.ID)))
	if b := awaitBulk(t, a, begun.ID, in(admin.BulkDone)); b.Changed != n || b.StoppedBy != "" {
		t.Errorf("%+v", b)
	}
	again, err := a.Bulks.Begin(ctx, admin.BulkSpec{Action: admin.DeleteTasks, Filter: admin.TaskFilter{State: admin.TaskDone}})
	must(t, err)
	b := awaitBulk(t, a, again.ID, in(admin.BulkDone))
	if b.Matched != 0 {
		t.Errorf("a task of the dispatcher was deleted: %+v", b)
	}
}

// A bulk action that fails for good says why, and goes on when a person has mended the cause. A release that does not know all of a
// filter must not touch more tasks than the filter means.
func TestBulks_failAndGoOn(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	d, q := jobs(t, rdb, 3)
	a, ctx := d.Admin(), t.Context()
	fence := int64(0)
	worker := func(id string) func() admin.BulkTask { // what an instance does with its task
		due, err := a.Tasks.List(ctx, admin.TaskQuery{TaskFilter: admin.TaskFilter{State: admin.TaskWaiting, Type: task.BulkType}})
		must(t, err)
		slices.Reverse(due.Items) // that of the newest turn: no instance settles those before
		i := slices.IndexFunc(due.Items, func(x admin.Task) bool { return strings.HasPrefix(x.ID, task.BulkType+":"+id+":") })
		fence++
		x := &task.Task{ID: due.Items[i].ID, Type: task.BulkType, Fence: fence}
		return func() admin.BulkTask {
			p, err := producer.New(q.Client(), q.Namespace(), producer.Config{})
			must(t, err)
			h, err := admin.NewBulkHandler(q.Client(), q.Namespace(), p, zerolog.Nop())
			must(t, err)
			must(t, h.Handle(ctx, x))
			b, err := a.Bulks.Get(ctx, id)
			must(t, err)
			return b
		}
	}
	begun, err := a.Bulks.Begin(ctx, cancelJobs)
	must(t, err)
	work := worker(begun.ID)
	must(t, rdb.Set(ctx, q.Keys().Held, "of another program", 0).Err())
	if b := work(); b.State != admin.BulkFailed || !strings.Contains(b.Error, "wrong type") || strings.Contains(b.Error, " script: ") {
		t.Errorf("%+v", b)
	}
	must(t, rdb.Del(ctx, q.Keys().Held).Err())
	if b := work(); b.State != admin.BulkFailed {
		t.Errorf("one that has ended went on: %+v", b)
	}
	must(t, second(a.Bulks.Resume(ctx, begun.ID)))
	if b := worker(begun.ID)(); b.State != admin.BulkDone || b.Changed != 3 || b.Matched != 3 || b.Error != "" {
		t.Errorf("%+v", b)
	}

	must(t, second(q.BeginBulk(ctx, queue.Bulk{ID: "newer", Action: "cancel", Filter: []byte(`{"host":"a"}`)}, "")))
	if b := worker("newer")(); b.State != admin.BulkFailed || b.Changed != 0 {
		t.Errorf("%+v", b)
	}
}
