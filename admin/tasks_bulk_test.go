package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestTasks_bulkTakesAPageAtATime(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
			a, ctx := of(dispatcher(t, rdb)), t.Context()
			const n = queue.MaxBatch + 5
			list := make([]*task.Task, n)
			for i := range list {
				list[i] = task.New([]string{"a", "b"}[i%2], nil)
			}
			if _, err := a.Tasks.Enqueue(ctx, list); err != nil {
				t.Fatal(err)
			}
			all := func(b admin.Bulk) (sum admin.BulkResult, pages int) {
				for {
					page, err := a.Tasks.Bulk(ctx, b)
					must(t, err)
					sum.Add(page)
					if pages++; page.Next == "" {
						return sum, pages
					}
					b.After = page.Next
				}
			}
			if sum, pages := all(admin.Bulk{Action: admin.CancelTasks, DryRun: true}); sum != (admin.BulkResult{Matched: n, DryRun: true}) || pages < 2 {
				t.Errorf("%+v on %d pages", sum, pages)
			}
			if sum, _ := all(admin.Bulk{Action: admin.CancelTasks, Filter: admin.TaskFilter{Type: "a"}}); sum.Matched != (n+1)/2 || sum.Changed != sum.Matched {
				t.Errorf("%+v", sum)
			}
			if c, err := a.Activity.Counts(ctx); err != nil || c.Waiting != n/2 {
				t.Errorf("%+v, %v", c, err)
			}
			for _, b := range []admin.Bulk{
				{Action: "burn"}, {}, {Action: admin.RetryTasks, Filter: admin.TaskFilter{State: admin.TaskWaiting}}, {Action: admin.DeleteTasks, Filter: admin.TaskFilter{State: admin.TaskRunning}},
			} {
				if _, err := a.Tasks.Bulk(ctx, b); !errors.Is(err, task.ErrInvalid) {
					t.Errorf("%+v: %v", b, err)
				}
			}
		})
	})
}

// To cancel a task lets the next one of its key move up, behind the place that the cancel has reached: the cancel comes back for that one.
func TestTasks_bulkCancelLeavesNoneBehind(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
			d := dispatcher(t, rdb)
			a, ctx := of(d), t.Context()
			const n = 2*queue.MaxBatch + 300
			list := make([]*task.Task, n)
			for i := range list {
				list[i] = task.New("long", nil, task.Key("k", 1))
			}
			if _, err := a.Tasks.Enqueue(ctx, list); err != nil {
				t.Fatal(err)
			}
			running, stop := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { ended <- d.Run(running) }()
			testredis.Eventually(t, patience, func() bool {
				c, err := a.Activity.Counts(ctx)
				return err == nil && c.Held > 0 && c.Running == 1
			}, "one runs and others wait for its key")
			stop()
			must(t, <-ended)
			var sum admin.BulkResult
			for b := (admin.Bulk{Action: admin.CancelTasks}); ; {
				page, err := a.Tasks.Bulk(ctx, b)
				must(t, err)
				sum.Add(page)
				if b.After = page.Next; b.After == "" {
					break
				}
			}
			c, err := a.Activity.Counts(ctx)
			must(t, err)
			if c.Waiting != 0 || sum.Changed != n || sum.Matched != n {
				t.Errorf("%d wait, %d of them for their key, of %d: %+v", c.Waiting, c.Held, n, sum)
			}
		})
	})
}

// A cancel of running tasks ends when it has met them all: it has no business with the due tasks.
func TestTasks_bulkCancelOfRunningTasksEnds(t *testing.T) {
	t.Parallel()
	ways(t, func(t *testing.T, of way) {
		d := dispatcher(t, testredis.Client(t))
		a, ctx := of(d), t.Context()
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- d.Run(running) }()
		t.Cleanup(func() {
			stop()
			must(t, <-ended)
		})
		enqueue(t, a, "long", "runs")
		testredis.Eventually(t, patience, func() bool {
			c, err := a.Activity.Counts(ctx)
			return err == nil && c.Running == 1
		}, "it runs")
		enqueue(t, a, "nobody", "due")
		page, err := a.Tasks.Bulk(ctx, admin.Bulk{Action: admin.CancelTasks, Filter: admin.TaskFilter{State: admin.TaskRunning}})
		must(t, err)
		if page.Matched != 1 || page.Changed != 1 || page.Next != "" {
			t.Errorf("%+v", page)
		}
		if c, err := a.Activity.Counts(ctx); err != nil || c.Waiting != 1 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// cut ends a context after some commands of one kind.
type cut struct {
	left atomic.Int64
	end  context.CancelFunc
}

func (*cut) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*cut) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (c *cut) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if strings.HasPrefix(cmd.Name(), "eval") && c.left.Add(-1) == 0 {
			c.end()
		}
		return err
	}
}

// A page whose caller leaves, or that is cut off, tells of what it has done until then.
func TestTasks_bulkThatIsCutOffTellsWhatItDid(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	a := dispatcher(t, rdb).Admin()
	for i := range 20 {
		enqueue(t, a, "a", fmt.Sprint("t", i))
	}
	ctx, end := context.WithCancel(t.Context())
	c := &cut{end: end}
	c.left.Store(7)
	rdb.AddHook(c)
	page, err := a.Tasks.Bulk(ctx, admin.Bulk{Action: admin.CancelTasks})
	if err == nil || page.Changed == 0 || page.Changed == 20 {
		t.Fatalf("%+v, %v", page, err)
	}
	events, err := a.Activity.Events(t.Context(), admin.EventQuery{})
	must(t, err)
	told := ""
	for _, e := range events.Items {
		if e.Event == "tasks changed" {
			told = e.Fields["tasks"]
		}
	}
	if told != strconv.Itoa(page.Changed) {
		t.Errorf("%d tasks were cancelled, and the events tell of %q", page.Changed, told)
	}
}
