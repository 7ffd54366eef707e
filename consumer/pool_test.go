package consumer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(8, 5)
		a, b, c := p.seat(), p.seat(), p.seat()
		rings := func(of *seat) bool {
			select {
			case <-of.bell:
				return true
			default:
				return false
			}
		}
		take := func(of *seat, most, want int) {
			t.Helper()
			if n := of.take(most, true); n != want {
				t.Fatalf("%d, want %d", n, want)
			}
		}
		none := func(why string) {
			t.Helper()
			if rings(a) || rings(b) || rings(c) {
				t.Fatal(why)
			}
		}
		take(a, 100, 4) // half of what is free is left for others
		take(b, 100, 2)
		take(c, 100, 1)
		take(a, 100, 1)
		take(b, 100, 0)
		take(c, 100, 0)
		a.note(4, 0)
		none("one is free of eight: no call is worth that yet")
		take(a, 100, 1) // in its turn it has what its runs gave back
		time.Sleep(turn)
		synctest.Wait()
		none("nothing is free")
		a.note(4, 0)
		if !rings(b) || rings(a) || rings(c) {
			t.Fatal("b is first, and has waited: it hears of the one, and nobody else")
		}
		take(a, 100, 0) // its turn is over
		take(c, 100, 0)
		take(b, 100, 1)
		a.note(2, 0)
		if !rings(c) || rings(a) {
			t.Fatal("a quarter is free: the next one hears of it at once")
		}
		c.calls()
		if !rings(a) {
			t.Fatal("c makes a call: the turn passes to a")
		}
		c.back()
		if !rings(c) {
			t.Fatal("it is c's turn again")
		}
		take(a, 100, 0)
		take(c, 100, 2) // it kept its place
		rings(b)
		rings(c)
		b.note(2, 0)
		none("one is free of eight")
		time.Sleep(linger)
		synctest.Wait()
		if !rings(a) {
			t.Fatal("a has waited: it hears of the one")
		}
		take(a, 100, 1)
		if p.used != 8 {
			t.Errorf("%d are in use", p.used)
		}
		for _, s := range []*seat{a, b, c} {
			s.leave()
		}
		if p.used != 0 || len(p.line) != 0 {
			t.Errorf("%+v", p)
		}
	})
}

// A call to a node that hangs keeps no workers from the other partitions.
func TestPool_lendsWhatACallHoldsForTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(4, 4)
		a, b := p.seat(), p.seat()
		if a.take(4, true)+a.take(4, true)+a.take(4, true) != 4 {
			t.Fatal("nobody waits: a has all")
		}
		a.calls()
		if b.take(4, true) != 0 {
			t.Fatal("more than there are")
		}
		time.Sleep(lendAt)
		synctest.Wait()
		if !a.lends() || len(b.bell) != 1 {
			t.Fatal("its call lasts: b may have them")
		}
		if n := b.take(3, true); n != 3 {
			t.Fatal(n)
		}
		if n, lent := a.answered(4, true); n != 1 || !lent {
			t.Errorf("of its four one is left: %d, %v", n, lent)
		}
		a.back()
		a.calls()
		time.Sleep(lendAt)
		synctest.Wait()
		if a.lends() {
			t.Error("the node is slow, as it was before: its calls have their time")
		}
		if n, lent := a.answered(4, true); n != 0 || lent {
			t.Errorf("this call had its time: %d, %v", n, lent)
		}
		a.calls()
		a.answered(0, false)
		a.lendHeld() // the timer had fired, and comes after the answer
		if a.lends() {
			t.Error("no call is under way")
		}
		a.leave()
		b.leave()
		if p.used != 0 {
			t.Errorf("%d are in use", p.used)
		}
	})
}

// Partitions share the workers: no more runs at once than there are, every task runs once, and one with little to do does not wait for
// one with much.
func TestConsume_partitionsShareWorkers(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		const workers, tasks = 3, 300
		pool := NewPool(workers, 4)
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

// Two partitions with much to do share the workers alike, though one of them had all before.
func TestConsume_fullPartitionsShareAlike(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		pool := NewPool(16, 4)
		a, b := newWorld(t, rdb), newWorld(t, rdb)
		var ofA, ofB atomic.Int64
		count := func(n *atomic.Int64) Handlers {
			return one(t, func(context.Context, *task.Task) error { time.Sleep(2 * time.Millisecond); n.Add(1); return nil })
		}
		a.leads(a.start(count(&ofA), pooled(pool)))
		b.leads(b.start(count(&ofB), pooled(pool)))
		much := func(w *world, n int) {
			list := make([]*task.Task, n)
			for i := range list {
				list[i] = job(fmt.Sprint(w.ns, i))
			}
			w.add(list...)
		}
		much(a, 8000)
		testredis.Eventually(t, patience, func() bool { return ofA.Load() > 100 }, "a runs")
		much(b, 1000)
		before := ofA.Load()
		testredis.Eventually(t, patience, func() bool { return ofB.Load() == 1000 }, "b runs")
		if n := ofA.Load() - before; n > 4000 {
			t.Errorf("%d runs of the one while the other had 1,000", n)
		}
	})
}

// A node that hangs keeps no workers from the partitions of another one.
func TestConsume_aPartitionThatHangsLendsItsWorkers(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	for range 3 {
		pool, slow := NewPool(4, 4), newWorld(t, rdb)
		other := newWorld(t, rdb)
		client, node := through(t, addrOf(t))
		var first atomic.Int64
		var ran ledger
		slow.leads(slow.start(one(t, func(context.Context, *task.Task) error { time.Sleep(time.Millisecond); first.Add(1); return nil }), pooled(pool), over(client)))
		other.leads(other.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }), pooled(pool)))
		for i := range 10 {
			list := make([]*task.Task, 500)
			for j := range list {
				list[j] = job(fmt.Sprint("slow", i, "-", j))
			}
			slow.add(list...)
		}
		testredis.Eventually(t, patience, func() bool { return first.Load() > 50 }, "all workers are busy")
		hung := make(chan struct{})
		node.hangs.Store(&hung)
		began := time.Now()
		for i := range 10 {
			id := fmt.Sprint("quick", i)
			other.add(job(id))
			testredis.Eventually(t, patience, func() bool { return ran.count(id) == 1 }, "%s runs", id)
		}
		took := time.Since(began)
		node.hangs.Store(nil)
		close(hung)
		if took < callTimeout-time.Second {
			return
		}
		t.Logf("%v: the machine is busy, or the workers came back when the call was given up", took)
	}
	t.Error("the workers were held until the call was given up")
}

// A consumer that waits for a worker when its instance may claim no more leaves the line to those that may.
func TestConsume_whoMayClaimNoMoreLeavesTheLine(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		pool := NewPool(2, 2)
		a, b := newWorld(t, rdb), newWorld(t, rdb)
		var hung atomic.Int64
		var ran ledger
		h := mux(t, map[string]handlers.Func{"hang": hang(t, &hung), "job": func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }})
		a.leads(a.start(h, pooled(pool), drain(-1), release("v1")))
		b.leads(b.start(h, pooled(pool), drain(-1), release("v1")))
		b.add(task.New("hang", nil, task.ID("h1")), task.New("hang", nil, task.ID("h2")))
		testredis.Eventually(t, patience, func() bool { return hung.Load() == 2 }, "all workers hang")
		inLine := func() int { pool.mu.Lock(); defer pool.mu.Unlock(); return len(pool.line) }
		a.add(job("a1"))
		testredis.Eventually(t, patience, func() bool { return inLine() > 0 }, "a waits")
		a.leads(a.start(h, drain(-1), release("v2"))) // it has workers of its own
		testredis.Eventually(t, patience, func() bool { return ran.count("a1") == 1 }, "it runs elsewhere")
		b.add(job("b1"))
		testredis.Eventually(t, patience, func() bool { return inLine() == 1 }, "only b waits")
	})
}

// Own tasks run in a partition that comes under the lead of an instance all of whose workers hang.
func TestConsume_ownTasksRunWhereTheLeadComesLater(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	pool := NewPool(1, 2)
	a, b := newWorld(t, rdb), newWorld(t, rdb)
	var hung atomic.Int64
	var ran ledger
	h := mux(t, map[string]handlers.Func{"job": hang(t, &hung), ownType: func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }})
	first := a.start(h, pooled(pool), drain(-1), release("v1"))
	a.leads(first)
	second := a.start(h, drain(-1), release("v2"))
	a.leads(second)
	b.leads(b.start(h, pooled(pool), drain(-1), release("v1")))
	time.Sleep(spareEvery + spareEvery/2) // it has looked for own tasks, and may claim none
	b.add(job("b1"))
	testredis.Eventually(t, patience, func() bool { return hung.Load() == 1 }, "its worker hangs")
	second.stop()
	a.leads(first)
	a.add(own(ownType, "own"))
	testredis.Eventually(t, patience, func() bool { return ran.count("own") == 1 }, "the task of the dispatcher's own runs")
}

// An instance whose workers are all taken by one partition leaves the due tasks of the others to an instance that has some.
func TestConsume_aFullInstanceLeavesOtherPartitionsToOthers(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		a, b := newWorld(t, rdb), newWorld(t, rdb)
		var hung atomic.Int64
		var ran ledger
		full, free := NewPool(1, 4), NewPool(1, 4)
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
		pool := NewPool(2, 4)
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
