package consumer

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// Each run begins at once, though none before it has ended; and each is let go with the others.
func TestWorkers_nobodyWaitsBehindABlockingRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		release := make(chan struct{})
		w := newWorkers(pprof.LabelSet{}, func(*run) { running.Done(); <-release })
		defer w.close()
		for range 3 {
			running.Add(1000)
			for range 1000 {
				w.begin(&run{})
			}
			running.Wait() // a run that waits in the line is a deadlock of the bubble
		}
		close(release)
	})
}

// Runs that take no time share a few goroutines, in one burst and in the next.
func TestWorkers_shortRunsShareGoroutines(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	by := map[string]int{}
	var running sync.WaitGroup
	w := newWorkers(pprof.LabelSet{}, func(*run) {
		mu.Lock()
		by[goroutine()]++
		mu.Unlock()
		running.Done()
	})
	defer w.close()
	for range 20 {
		running.Add(100)
		for range 100 {
			w.begin(&run{})
		}
		running.Wait()
	}
	if len(by) > 200 {
		t.Errorf("%d goroutines for 2000 runs", len(by))
	}
}

// goroutine is the name of the calling goroutine, such as "goroutine 7".
func goroutine() string {
	text := make([]byte, 64)
	name, _, _ := strings.Cut(string(text[:runtime.Stack(text, false)]), " [")
	return name
}

func TestWorkers_letsTheIdleGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorkers(pprof.LabelSet{}, func(*run) { time.Sleep(time.Second) })
		defer w.close()
		idle := func() int {
			synctest.Wait()
			w.mu.Lock()
			defer w.mu.Unlock()
			return len(w.idle)
		}
		for range 2 * mostIdle {
			w.begin(&run{})
		}
		time.Sleep(1500 * time.Millisecond)
		if n := idle(); n != mostIdle {
			t.Errorf("%d are idle, want %d", n, mostIdle)
		}
		for range 30 { // three are in use, again and again
			for range 3 {
				w.begin(&run{})
			}
			time.Sleep(1500 * time.Millisecond)
			if n := idle(); n < 3 {
				t.Fatalf("%d are idle: one that was in use has gone", n)
			}
		}
		if n := idle(); n != 3 {
			t.Errorf("%d are idle, want the 3 that were in use", n)
		}
		time.Sleep(2*keepIdle + time.Second)
		if n := idle(); n != 0 {
			t.Errorf("%d are idle after all this time", n)
		}
		w.mu.Lock()
		look := w.look
		w.mu.Unlock()
		if look != nil {
			t.Error("a timer runs though nobody is idle")
		}
	})
}

// A worker whose handler ended the goroutine is replaced, and those behind it run.
func TestWorkers_surviveGoexit(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	running.Add(500)
	w := newWorkers(pprof.LabelSet{}, func(*run) { running.Done(); runtime.Goexit() })
	defer w.close()
	for range 500 {
		w.begin(&run{})
	}
	running.Wait()
}

// The next run does not see the state that a handler leaves behind on its goroutine.
func TestWorkers_beginEachRunClean(t *testing.T) {
	t.Parallel()
	profiled := pprof.Labels("part", "consumer")
	done := make(chan string)
	w := newWorkers(profiled, func(*run) {
		found := labels(t)
		if debug.SetPanicOnFault(true) {
			found += " and panics on a fault"
		}
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("left", "behind")))
		done <- found
	})
	defer w.close()
	for i := range 5 {
		w.begin(&run{})
		if found := <-done; !strings.Contains(found, `"part":"consumer"`) || strings.Contains(found, "behind") || strings.Contains(found, "fault") {
			t.Errorf("run %d begins with %s", i, found)
		}
	}
}

// labels are the pprof labels that the calling goroutine has, which only a profile shows.
func labels(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Error(err)
	}
	for part := range strings.SplitSeq(text.String(), "\n\n") {
		if strings.Contains(part, "consumer.labels") && !strings.Contains(part, "FailNow") {
			if _, found, ok := strings.Cut(part, "# labels: "); ok {
				line, _, _ := strings.Cut(found, "\n")
				return line
			}
		}
	}
	return "no labels"
}

// A goroutine that its handler left locked to a thread runs nothing more: its end ends the thread.
func TestWorkers_endWithALockedThread(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var mu sync.Mutex
	tainted := map[string]bool{}
	var ran ledger
	n := w.start(mux(t, map[string]handlers.Func{
		"locks": func(_ context.Context, tk *task.Task) error {
			runtime.LockOSThread()
			mu.Lock()
			defer mu.Unlock()
			if tainted[goroutine()] {
				t.Error("a locked goroutine runs again")
			}
			tainted[goroutine()] = true
			ran.note(tk)
			return nil
		},
		"job": func(_ context.Context, tk *task.Task) error {
			mu.Lock()
			defer mu.Unlock()
			if tainted[goroutine()] {
				t.Error("a locked goroutine runs another task")
			}
			ran.note(tk)
			return nil
		},
	}), concurrency(4))
	w.leads(n)
	var list []*task.Task
	for range 100 {
		list = append(list, typed("locks", task.NewID(time.Now())), job(""))
	}
	w.add(list...)
	testredis.Eventually(t, patience, func() bool { return ran.total() == 200 }, "all run")
}

// As many handlers as the concurrency says block at once, and one that a call claims later begins beside them.
func TestConsume_runsAThousandBlockingHandlersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	n := w.start(one(t, func(ctx context.Context, tk *task.Task) error {
		ran.note(tk)
		<-ctx.Done()
		return ctx.Err()
	}), concurrency(1001), drain(-1))
	w.leads(n)
	list := make([]*task.Task, 1000)
	for i := range list {
		list[i] = job("")
	}
	w.add(list...)
	testredis.Eventually(t, patience, func() bool { return ran.total() == 1000 }, "all block")
	w.add(job("last"))
	testredis.Eventually(t, patience, func() bool { return ran.count("last") == 1 }, "the last blocks beside them")
}

// Runs that take longer than a call are claimed by halves, so that Redis works while they run. Others are not: a call has a
// cost of its own.
func TestNextPortion_isHalfIfTheRunsHoldUpTheCalls(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for name, tt := range map[string]struct {
		lull  time.Duration // between an answer and the next call, which takes 2 ms
		still int           // that run when the next answer is there
		want  []int
	}{
		"the calls do": {time.Millisecond, 0, []int{512, 1000, 1000}},
		"the runs do":  {3 * time.Millisecond, 50, []int{512, 50, 50}},
		"they did":     {3 * time.Millisecond, 0, []int{512, 50, 512}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &Consumer{cfg: Config{Concurrency: 100}, portion: firstPortion}
			at := start
			for i, want := range tt.want {
				came := at.Add(2 * time.Millisecond)
				if c.portion = c.nextPortion(&answer{sent: at, came: came, reply: &queue.CycleReply{LeftDue: true}}); c.portion != want {
					t.Errorf("portion %d is %d, want %d", i, c.portion, want)
				}
				at = came.Add(tt.lull)
				c.busy.tasks = tt.still
			}
			if n := c.nextPortion(&answer{sent: at, came: at, reply: &queue.CycleReply{}}); n != firstPortion || c.heavy {
				t.Errorf("after the burst %d, heavy: %v", n, c.heavy)
			}
		})
	}
}

// A call that only found new lanes, or that claims are in doubt, says nothing of a burst: the first claim after it is a first one.
func TestNextPortion_beginsWithTheFirstClaim(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, tt := range map[string]struct {
		doubt bool
		reply queue.CycleReply
		want  int
	}{
		"new lanes":               {false, queue.CycleReply{LeftDue: true, LanesVer: 7}, firstPortion},
		"new lanes, and a claim":  {false, queue.CycleReply{LeftDue: true, LanesVer: 7, Claimed: []*task.Task{{Type: "a"}}}, growth * firstPortion},
		"in doubt":                {true, queue.CycleReply{LeftDue: true}, firstPortion},
		"all of a portion waited": {false, queue.CycleReply{LeftDue: true}, growth * firstPortion},
	} {
		c := &Consumer{cfg: Config{Concurrency: 1000}, portion: firstPortion, doubt: tt.doubt}
		if n := c.nextPortion(&answer{sent: now, came: now, reply: &tt.reply}); n != tt.want {
			t.Errorf("%s: %d, want %d", name, n, tt.want)
		}
	}
}

// The rest of a burst is not left to one call more, and where calls hold up the runs, none waits for many free workers.
func TestWanted_takesTheRestOfABurst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		portion, free int
		heavy         bool
		want          int
		worth         bool
	}{
		"the first call":               {firstPortion, 150, false, firstPortion, true},
		"few are left after a portion": {512, 700, false, 700, true},
		"many are":                     {512, 872, false, 512, true},
		"fewer than a portion":         {512, 200, false, 200, true},
		"hardly any":                   {512, 50, false, 50, false},
		"none":                         {512, -1, false, 0, false},
		"runs hold up calls":           {500, 700, true, 500, true},
		"they do, and fewer are free":  {500, 400, true, 400, false},
		"more than a call may claim":   {900, 1300, false, queue.MaxBatch, true},
	} {
		c := &Consumer{cfg: Config{Concurrency: 1000}, portion: tt.portion, heavy: tt.heavy}
		if n, worth := c.wanted(tt.free), c.worthwhile(tt.free); n != tt.want || worth != tt.worth {
			t.Errorf("%s: wants %d, worth a call: %v; want %d, %v", name, n, worth, tt.want, tt.worth)
		}
	}
}
