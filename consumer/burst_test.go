package consumer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// The first tasks of a burst are not to wait until all of it is claimed, and the rest not for a hundred calls.
func TestConsume_claimsABurstInGrowingPortions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }), concurrency(2000))
	w.leads(n)
	const burst = 1500
	due := time.Now().Add(300 * time.Millisecond)
	list := make([]*task.Task, burst)
	for i := range list {
		list[i] = job("", task.At(due))
	}
	w.add(list...)
	testredis.Eventually(t, patience, func() bool { return ran.total() == burst }, "all ran")

	claims := map[time.Time]int{} // tasks of one claim have the same time
	for _, tk := range ran.all() {
		claims[tk.Claimed]++
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(claims)), time.Time.Compare)
	if n := claims[first]; n > firstPortion {
		t.Errorf("the first call claimed %d", n)
	}
	if len(claims) > 8 {
		t.Errorf("%d calls for %d tasks: %v", len(claims), burst, claims)
	}
}

// A claim that took all it was to take says nothing of workers that are still free: the next task must not wait for a
// run to end.
func TestConsume_looksOnAfterAFullPortion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	n := w.start(one(t, func(ctx context.Context, tk *task.Task) error {
		ran.note(tk)
		<-ctx.Done()
		return ctx.Err()
	}), concurrency(2*firstPortion), drain(-1))
	w.leads(n)
	due := time.Now().Add(300 * time.Millisecond)
	list := make([]*task.Task, firstPortion)
	for i := range list {
		list[i] = job("", task.At(due))
	}
	w.add(list...)
	testredis.Eventually(t, patience, func() bool { return ran.total() == firstPortion }, "all of the portion run")
	w.add(job("next"))
	testredis.Eventually(t, patience, func() bool { return ran.count("next") == 1 }, "the next runs beside them")
}

// With hundreds of workers a partition claims while its last claim begins: it takes no more workers than there are, gives each back, and
// leaves room for another partition.
func TestConsume_aPartitionClaimsAheadWithinThePool(t *testing.T) {
	t.Parallel()
	pool := NewPool(1000, 4)
	rdb := testredis.Real(t)
	a, b := newWorld(t, rdb), newWorld(t, rdb)
	var runs, most, others atomic.Int64
	var ran ledger
	a.leads(a.start(one(t, func(_ context.Context, tk *task.Task) error {
		for n, m := runs.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		time.Sleep(time.Millisecond)
		runs.Add(-1)
		ran.note(tk)
		return nil
	}), pooled(pool)))
	b.leads(b.start(one(t, func(context.Context, *task.Task) error { others.Add(1); return nil }), pooled(pool)))
	const total = 10_000
	due := time.Now().Add(500 * time.Millisecond)
	for from := 0; from < total; from += 1000 {
		list := make([]*task.Task, 1000)
		for i := range list {
			list[i] = job(fmt.Sprint(from+i), task.At(due))
		}
		a.add(list...)
	}
	b.add(job("of b", task.At(due)))
	testredis.Eventually(t, patience, func() bool { return ran.total() == total && others.Load() == 1 }, "all of both run")
	for i := range total {
		if n := ran.count(fmt.Sprint(i)); n != 1 {
			t.Fatalf("task %d ran %d times", i, n)
		}
	}
	if n := most.Load(); n > 1000 {
		t.Errorf("%d runs at once on 1,000 workers", n)
	}
	testredis.Eventually(t, patience, func() bool {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		return pool.used == 0
	}, "all workers are given back")
}
