package consumer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// slots are the tasks of a schedule, one each millisecond, from a moment on.
func slots(name string, from time.Time, n int) (list []*task.Task) {
	for i := range n {
		t := job("", task.At(from.Add(time.Duration(i)*time.Millisecond)))
		t.Schedule, t.Slot, t.ID = name, t.Due, task.SlotID(name, t.Due)
		list = append(list, t)
	}
	return list
}

// A schedule whose runs overlap and hang takes half of the workers while slots of another wait, and then the others too. When it has
// all of them, the next worker goes to the other.
func TestConsume_aSlowScheduleLeavesWorkersToOthers(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		var slow, quick ledger
		let := make(chan struct{})
		n := w.start(one(t, func(ctx context.Context, tk *task.Task) error {
			if tk.Schedule == "quick" {
				quick.note(tk)
				return nil
			}
			slow.note(tk)
			select {
			case <-let:
			case <-ctx.Done():
			}
			return nil
		}), concurrency(4), drain(-1))
		// before returns how many slow tasks were claimed before the last quick one.
		before := func() (n int) {
			var last int64
			for _, tk := range quick.all() {
				last = max(last, tk.Fence)
			}
			for _, tk := range slow.all() {
				if tk.Fence < last {
					n++
				}
			}
			return n
		}
		began := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
		w.add(slots("slow", began, 40)...)
		w.add(slots("quick", began.Add(time.Second), 6)...)
		w.leads(n)
		testredis.Eventually(t, patience, func() bool { return quick.total() == 6 }, "the quick ones run beside the slow ones")
		testredis.Eventually(t, patience, func() bool { return slow.total() == 4 }, "the slow ones take all workers")
		if n := before(); n > 2 {
			t.Errorf("a quick one was claimed after %d slow ones", n)
		}
		w.add(slots("quick", began.Add(2*time.Second), 1)...)
		let <- struct{}{}
		testredis.Eventually(t, patience, func() bool { return quick.total() == 7 && slow.total() == 5 }, "each gets the worker")
		if n := before(); n != 4 {
			t.Errorf("the quick one was claimed after %d slow ones, when 4 had taken all workers", n)
		}
	})
}

// A claim knows of the tasks that the one before took, and whose runs begin meanwhile.
func TestConsume_aBurstOfOneScheduleLeavesWorkersToOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var slow, others atomic.Int64
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	n := w.start(one(t, func(ctx context.Context, tk *task.Task) error {
		if tk.Schedule == "slow" {
			slow.Add(1)
		} else {
			others.Add(1)
		}
		select {
		case <-over:
		case <-ctx.Done():
		}
		return nil
	}), concurrency(1000), drain(-1))
	began := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	var list []*task.Task
	for i := range 500 {
		list = append(list, job(fmt.Sprint("other", i), task.At(began.Add(10*time.Second))))
	}
	w.add(list...)
	w.add(slots("slow", began, 1000)...)
	w.leads(n)
	testredis.Eventually(t, patience, func() bool { return slow.Load()+others.Load() == 1000 }, "all workers are taken")
	if n := slow.Load(); n != 500 {
		t.Errorf("the schedule took %d of 1000 workers", n)
	}
}

func TestCrowd_namesTheSchedulesWithManyWorkers(t *testing.T) {
	t.Parallel()
	c := crowd{}
	of := func(name string) *task.Task { return &task.Task{Schedule: name} }
	for name, n := range map[string]int{"": 9, "a": 1, "b": 2, "c": 5} {
		for range n {
			c.add(of(name), 1)
		}
	}
	c.add(of("c"), -1)
	heavy := c.heavy(8)
	slices.SortFunc(heavy, func(a, b queue.Taken) int { return a.Workers - b.Workers })
	if want := []queue.Taken{{Schedule: "b", Workers: 2}, {Schedule: "c", Workers: 4}}; !slices.Equal(heavy, want) {
		t.Errorf("got %v, want %v", heavy, want)
	}
	for range 2 {
		c.add(of("b"), -1)
	}
	if _, kept := c["b"]; kept {
		t.Error("a schedule without runs is kept")
	}
}

// The handler of a run of a schedule is counted until its task has left, however it ends.
func TestConsume_countsTheRunsOfSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error {
		ran.note(tk)
		if tk.Attempt == 1 {
			return handlers.RetryAfter(fmt.Errorf("not yet"), time.Millisecond)
		}
		return nil
	}), concurrency(8))
	w.leads(n)
	list := slots("s", time.Now().Truncate(time.Millisecond), 20)
	w.add(list...)
	for _, tk := range list {
		w.gone(tk.ID)
	}
	n.stop()
	if len(n.crowd) > 0 {
		t.Errorf("after all runs, workers are counted: %v", n.crowd)
	}
}
