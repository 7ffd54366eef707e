package consumer

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// TestPromise8_unknownWorkWaits: a task of a type that no instance handles stays due and costs no attempt.
func TestPromise8_unknownWorkWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	fn := func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }
	first := w.start(one(t, fn))
	w.add(task.New("new.kind", nil, task.ID("unknown"), task.Keep(-1)), job("known", task.Keep(-1)))
	w.gone("known")
	w.add(job("after", task.Keep(-1)))
	w.gone("after")
	if rec := w.record("unknown"); rec.Attempts != 0 {
		t.Errorf("%d attempts", rec.Attempts)
	}
	first.stop()
	w.start(mux(t, map[string]handlers.Func{"job": fn, "new.kind": fn}))
	w.gone("unknown")
	if last := ran.all()[2]; last.ID != "unknown" || last.Attempt != 1 {
		t.Errorf("ran %+v", last)
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strict   bool
		min, max int // of the first 200 runs, how many of the heavy queue
	}{"weighted": {false, 110, 195}, "strict": {true, 200, 200}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testredis.Real(t))
			var ran ledger
			var list []*task.Task
			for i := range 250 {
				list = append(list, job(fmt.Sprint("l", i), task.Queue("light"), task.Keep(-1)), job(fmt.Sprint("h", i), task.Queue("heavy"), task.Keep(-1)))
			}
			list = append(list, job("other", task.Queue("not-ours")))
			w.add(list...)
			w.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }), concurrency(1), func(s *setup) {
				s.Queues, s.Strict = map[string]int{"light": 1, "heavy": 3}, tt.strict
			})
			testredis.Eventually(t, patience, func() bool { return ran.total() >= 500 }, "all run")
			heavy := 0
			for _, tk := range ran.all()[:200] {
				if tk.Queue == "heavy" {
					heavy++
				}
			}
			if heavy < tt.min || heavy > tt.max {
				t.Errorf("%d of the first 200 runs are of the heavy queue, want %d to %d", heavy, tt.min, tt.max)
			}
			if ran.count("other") != 0 {
				t.Error("a queue that is not ours was read")
			}
		})
	}
}

// gauge measures how many run at once.
type gauge struct{ now, most atomic.Int32 }

func (g *gauge) enter() func() {
	n := g.now.Add(1)
	for old := g.most.Load(); n > old && !g.most.CompareAndSwap(old, n); old = g.most.Load() {
	}
	return func() { g.now.Add(-1) }
}

func TestLimits_overTwoInstances(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var typ, key gauge
	var ran ledger
	m := mux(t, map[string]handlers.Func{
		"job": func(_ context.Context, tk *task.Task) error {
			defer typ.enter()()
			time.Sleep(5 * time.Millisecond)
			ran.note(tk)
			return nil
		},
		"keyed": func(_ context.Context, tk *task.Task) error {
			defer key.enter()()
			time.Sleep(5 * time.Millisecond)
			ran.note(tk)
			return nil
		},
	})
	for range 2 {
		w.start(m, concurrency(20), consumeBy(instance.ConsumeAll), func(s *setup) { s.Limits = map[string]int{"job": 3} })
	}
	var list []*task.Task
	for i := range 60 {
		list = append(list, job(fmt.Sprint("t", i), task.Keep(-1)), task.New("keyed", nil, task.ID(fmt.Sprint("k", i)), task.Key("one", 2), task.Keep(-1)))
	}
	w.add(list...)
	testredis.Eventually(t, patience, func() bool { return ran.total() == 120 }, "all run")
	if typ.most.Load() != 3 || key.most.Load() != 2 {
		t.Errorf("at once: %d of the type with limit 3, %d of the key with limit 2", typ.most.Load(), key.most.Load())
	}
	testredis.Eventually(t, patience, func() bool { return w.rdb.HLen(t.Context(), w.q.Keys().Active).Val() == 0 }, "nothing is counted as running")
}

// TestPromise3_tenThousandTasksRunOnce is a stress of two consumers that share the work.
func TestPromise3_tenThousandTasksRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	const n = 10_000
	var runs sync.Map
	var total atomic.Int32
	by := map[string]*atomic.Int32{}
	var mu sync.Mutex
	fn := func(_ context.Context, tk *task.Task) error {
		if _, twice := runs.LoadOrStore(tk.ID, true); twice {
			t.Errorf("%s ran twice", tk.ID)
		}
		mu.Lock()
		if by[tk.Instance] == nil {
			by[tk.Instance] = &atomic.Int32{}
		}
		by[tk.Instance].Add(1)
		mu.Unlock()
		total.Add(1)
		return nil
	}
	for range 2 {
		w.start(one(t, fn), concurrency(50), consumeBy(instance.ConsumeAll))
	}
	for i := 0; i < n; i += 500 {
		var list []*task.Task
		for k := i; k < i+500; k++ {
			list = append(list, &task.Task{ID: fmt.Sprint("t", k), Type: "job"})
		}
		w.add(list...)
	}
	testredis.Eventually(t, 2*patience, func() bool { return total.Load() == n }, "all run")
	testredis.Eventually(t, patience, func() bool { return w.rdb.HLen(t.Context(), w.q.Keys().Tasks).Val() == 0 }, "all leave")
	if len(by) != 2 {
		t.Errorf("%d instances worked", len(by))
	}
}

// TestIdle_costsNoPolling: waiting costs heartbeats only, and a wake-up makes an instance claim a new task.
func TestIdle_costsNoPolling(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	w := worldIn(t, srv.Client(), "idle")
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }))
	w.leads(n)
	w.add(job("warm", task.Keep(-1)))
	w.gone("warm")
	w.add(job("later", task.In(time.Hour)))
	time.Sleep(500 * time.Millisecond)
	watch := srv.Client()
	calls := func() (n int64) {
		info := watch.InfoMap(t.Context(), "commandstats").Val()
		_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_evalsha"], "calls=%d", &n)
		return n
	}
	before := calls()
	if before == 0 {
		t.Fatal("Redis does not say how often it was called")
	}
	time.Sleep(3 * time.Second)
	if n := calls() - before; n > 5 {
		t.Errorf("%d scripts in three idle seconds", n)
	}
	w.add(job("now", task.Keep(-1)))
	testredis.Eventually(t, patience, func() bool { return ran.count("now") == 1 }, "it runs")
	for _, tk := range ran.all() {
		if tk.ID == "now" && tk.Claimed.Sub(tk.Due) > 800*time.Millisecond {
			t.Errorf("claimed %v late: by the heartbeat, not the wake-up", tk.Claimed.Sub(tk.Due))
		}
	}
}
