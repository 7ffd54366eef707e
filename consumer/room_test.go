package consumer

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

const ownType = task.Own + "notify"

// hang is a handler whose runs last until the test ends.
func hang(t *testing.T, running *atomic.Int64) handlers.Func {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	return func(ctx context.Context, _ *task.Task) error {
		running.Add(1)
		select {
		case <-over:
		case <-ctx.Done():
		}
		return nil
	}
}

func own(typ, id string) *task.Task {
	return task.New(typ, nil, task.ID(id), task.WithPriority(task.High))
}

// While every worker of the only instance hangs, the dispatcher's own tasks run, also one whose lane is new, and a retry.
func TestConsume_ownTasksRunWhileAllWorkersHang(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		var hung atomic.Int64
		var ran ledger
		again := func(_ context.Context, tk *task.Task) error {
			ran.note(tk)
			if tk.Attempt == 1 {
				return fmt.Errorf("not yet")
			}
			return nil
		}
		n := w.start(mux(t, map[string]handlers.Func{"job": hang(t, &hung), ownType: again}), concurrency(2), drain(-1))
		w.leads(n)
		w.add(job("a"), job("b"), job("c"))
		testredis.Eventually(t, patience, func() bool { return hung.Load() == 2 }, "both workers hang")
		for i := range 3 {
			tk := own(ownType, fmt.Sprint("own", i))
			tk.MaxAttempts, tk.Backoff = 3, task.Backoff{Base: 100 * time.Millisecond, Cap: 100 * time.Millisecond}
			w.add(tk)
			testredis.Eventually(t, patience, func() bool { return ran.count(tk.ID) == 2 }, "%s is tried twice", tk.ID)
		}
		if n := hung.Load(); n != 2 {
			t.Errorf("%d tasks of users run, of 2 at most", n)
		}
	})
}

// Own tasks that hang take no worker from others, and run no more at once than they have workers.
func TestConsume_ownTasksTakeNoWorkerOfOthers(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		var hung, jobs atomic.Int64
		n := w.start(mux(t, map[string]handlers.Func{ownType: hang(t, &hung), "job": hang(t, &jobs)}), concurrency(3), drain(-1))
		w.leads(n)
		for i := range 5 {
			w.add(own(ownType, fmt.Sprint("own", i)))
		}
		testredis.Eventually(t, patience, func() bool { return hung.Load() == ownWorkers }, "its own workers are taken")
		w.add(job("a"), job("b"), job("c"), job("d"))
		testredis.Eventually(t, patience, func() bool { return jobs.Load() == 3 }, "the others are not")
		if n := hung.Load(); n != ownWorkers {
			t.Errorf("%d own tasks run, of %d at most", n, ownWorkers)
		}
	})
}

// Bulk actions, which may last for hours, leave a worker for messages.
func TestConsume_bulkActionsLeaveAWorkerForMessages(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		var bulks atomic.Int64
		var ran ledger
		n := w.start(mux(t, map[string]handlers.Func{task.BulkType: hang(t, &bulks), ownType: func(_ context.Context, tk *task.Task) error {
			ran.note(tk)
			return nil
		}}), concurrency(1), drain(-1))
		w.leads(n)
		w.add(own(task.BulkType, "bulk1"), own(task.BulkType, "bulk2"))
		testredis.Eventually(t, patience, func() bool { return bulks.Load() == 1 }, "a bulk action runs")
		w.add(own(ownType, "message"))
		testredis.Eventually(t, patience, func() bool { return ran.count("message") == 1 }, "the message is sent")
		if n := bulks.Load(); n != 1 {
			t.Errorf("%d bulk actions run at once", n)
		}
	})
}

// An instance whose own workers are taken does not keep an own task that it is told of from an instance that has one left.
func TestConsume_ownTasksGoToTheInstanceThatHasAWorkerLeft(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		var hung atomic.Int64
		h := hang(t, &hung)
		a := w.start(mux(t, map[string]handlers.Func{ownType: h}), consumeBy("all"), drain(-1))
		w.leads(a)
		w.start(mux(t, map[string]handlers.Func{ownType: h}), consumeBy("all"), standby, drain(-1))
		for i := range 2 * ownWorkers {
			w.add(own(ownType, fmt.Sprint("own", i)))
			testredis.Eventually(t, patience, func() bool { return hung.Load() == int64(i)+1 }, "own task %d begins", i)
		}
	})
}

// counter counts the calls that claim and settle.
type counter struct{ n atomic.Int64 }

func (c *counter) PrimarySuspected() {}
func (c *counter) Called(script string, _ time.Duration, _ error) {
	if script == "cycle" {
		c.n.Add(1)
	}
}

// While all workers hang and there is no own work, a consumer makes one call each spareEvery at most, and none when tasks are added.
func TestConsume_aHungInstanceCallsRarely(t *testing.T) {
	bubble(t, func(w *world) {
		var hung atomic.Int64
		var calls counter
		n := w.start(mux(w.T, map[string]handlers.Func{"job": hang(w.T, &hung), ownType: hang(w.T, &hung)}), concurrency(1), drain(-1), over(store.Observed(w.rdb, &calls)))
		w.leads(n)
		w.add(own(ownType, "own"))
		w.add(job("a"))
		testredis.Eventually(w, patience, func() bool { return hung.Load() == 2 }, "both run")
		time.Sleep(3 * spareEvery)
		before := calls.n.Load()
		const looks = 10
		for i := range looks * 4 {
			w.add(job(fmt.Sprint("more", i)))
			time.Sleep(spareEvery / 4)
		}
		if n := calls.n.Load() - before; n < looks-1 || n > looks+1 {
			w.Errorf("%d calls in %v, want %d", n, looks*spareEvery, looks)
		}
	})
}
