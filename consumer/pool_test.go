package consumer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func pooled(p *Pool) func(*setup) {
	return func(s *setup) { s.Pool, s.Concurrency = p, p.size }
}

func TestPool_servesThoseWhoWaitInTurn(t *testing.T) {
	t.Parallel()
	p := NewPool(4)
	var list [3]*Consumer
	for i := range list {
		list[i] = &Consumer{bell: make(chan struct{}, 1)}
	}
	a, b, c := list[0], list[1], list[2]
	rings := func(of *Consumer) bool {
		select {
		case <-of.bell:
			return true
		default:
			return false
		}
	}
	take := func(of *Consumer, most, want int) {
		t.Helper()
		if n := p.take(of, most, true); n != want {
			t.Fatalf("%d, want %d", n, want)
		}
	}
	take(a, 100, 4) // nobody waits: all
	take(b, 100, 0)
	take(c, 100, 0)
	take(a, 100, 0) // it waits too, behind them
	p.note(a, 3)
	if !rings(b) || rings(c) || rings(a) {
		t.Fatal("one worker is free: the first in line hears of it, and no other")
	}
	take(a, 100, 0)
	take(c, 100, 0)
	take(b, 100, 1)
	p.note(a, 0)
	if !rings(c) || !rings(a) {
		t.Fatal("three are free: both hear of it")
	}
	take(a, 100, 1) // one is for c, who was before, and the rest is shared
	take(c, 100, 2)
	take(b, 100, 0)
	p.leave(c)
	if !rings(b) {
		t.Fatal("two left: b hears of it")
	}
	take(b, 1, 1)
	if p.used != 3 {
		t.Errorf("%d are in use", p.used)
	}
	p.leave(a)
	p.leave(b)
	if p.used != 0 || len(p.line) != 0 || len(p.taken) != 0 {
		t.Errorf("%+v", p)
	}
}

// Partitions share the workers: no more runs at once than there are, every task runs once, and one with little to do does not wait for
// one with much.
func TestConsume_partitionsShareWorkers(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		const workers, tasks = 3, 300
		pool := NewPool(workers)
		var running, most atomic.Int64
		var mu sync.Mutex
		var order []string
		h := one(t, func(_ context.Context, tk *task.Task) error {
			n := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			mu.Lock()
			order = append(order, tk.ID)
			mu.Unlock()
			time.Sleep(5 * time.Millisecond)
			return nil
		})
		ran := func() int { mu.Lock(); defer mu.Unlock(); return len(order) }
		var parts []*world
		for range 4 {
			w := newWorld(t, rdb)
			w.leads(w.start(h, pooled(pool)))
			parts = append(parts, w)
		}
		for i := range tasks {
			parts[0].add(job(fmt.Sprint("much", i)))
		}
		testredis.Eventually(t, patience, func() bool { return ran() > 20 }, "the first run")
		before := ran()
		for i, w := range parts[1:] {
			w.add(job(fmt.Sprint("little", i)))
		}
		testredis.Eventually(t, patience, func() bool { return ran() == tasks+3 }, "all run")
		seen, last := map[string]bool{}, 0
		for i, id := range order {
			if seen[id] {
				t.Errorf("%s ran twice", id)
			}
			seen[id] = true
			if id[0] == 'l' {
				last = i
			}
		}
		if n := most.Load(); n > workers {
			t.Errorf("%d ran at once", n)
		}
		if last-before > tasks/2 {
			t.Errorf("the others waited for %d runs of the full partition", last-before)
		}
		testredis.Eventually(t, patience, func() bool {
			pool.mu.Lock()
			defer pool.mu.Unlock()
			return pool.used == 0 && len(pool.line) == 0
		}, "no worker is held")
	})
}

// An instance whose workers are all taken by one partition leaves the due tasks of the others to an instance that has some.
func TestConsume_aFullInstanceLeavesOtherPartitionsToOthers(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		a, b := newWorld(t, rdb), newWorld(t, rdb)
		var hung atomic.Int64
		var ran ledger
		full, free := NewPool(1), NewPool(1)
		quick := func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }
		first := mux(t, map[string]handlers.Func{"hang": hang(t, &hung), "job": quick})
		all := consumeBy(instance.ConsumeAll)
		a.leads(a.start(first, pooled(full), all, drain(-1)))
		b.leads(b.start(first, pooled(full), all, drain(-1)))
		a.add(task.New("hang", nil, task.ID("hang")))
		testredis.Eventually(t, patience, func() bool { return hung.Load() == 1 }, "its worker hangs")
		b.start(one(t, quick), pooled(free), all)
		for i := range 5 {
			id := fmt.Sprint("b", i)
			b.add(job(id))
			testredis.Eventually(t, patience, func() bool { return ran.count(id) == 1 }, "%s runs", id)
		}
	})
}

// Own tasks run while the workers of the pool hang.
func TestConsume_ownTasksRunWhileThePoolHangs(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		a, b := newWorld(t, rdb), newWorld(t, rdb)
		var hung atomic.Int64
		var ran ledger
		pool := NewPool(2)
		h := mux(t, map[string]handlers.Func{"job": hang(t, &hung), ownType: func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }})
		a.leads(a.start(h, pooled(pool), drain(-1)))
		b.leads(b.start(h, pooled(pool), drain(-1)))
		a.add(job("a1"), job("a2"), job("a3"))
		testredis.Eventually(t, patience, func() bool { return hung.Load() == 2 }, "all workers hang")
		b.add(job("b1"))
		for _, w := range []*world{a, b} {
			id := "own" + w.ns
			w.add(own(ownType, id))
			testredis.Eventually(t, patience, func() bool { return ran.count(id) == 1 }, "%s runs", id)
		}
		if n := hung.Load(); n != 2 {
			t.Errorf("%d run, of 2 at most", n)
		}
	})
}
