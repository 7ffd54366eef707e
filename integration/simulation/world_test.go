package simulation

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
)

const namespace = "simulated"

// world is one run of a plan, in a bubble of its own.
type world struct {
	t     testing.TB
	plan  *plan
	redis *virtualRedis
	began time.Time

	operator  *onbeat.Dispatcher // makes calls from outside, and never runs
	queue     *queue.Queue       // where such calls arrive
	effects   *effects           // nil if the plan has none
	schedules *producer.Schedules
	registry  *instance.Registry

	mu    sync.Mutex
	nodes map[string]*node
	ids   map[string]*node // by the ID of the instance
	runs  []*run
	book  book
	back  time.Time // when Redis was last back, and the processes that waited for it were connected again
	calm  time.Time // the bounds hold from here on: no fault can be felt any more
	why   string    // the last fault
	lines []string  // the events, for people
	found []fault

	looks        int
	slowest      time.Duration
	gaps         []outage
	lossy        []time.Time              // since when Redis may have lost writes, for each time that it did
	storms       []gap                    // the times in which a fault could be felt
	pass         *passing                 // of the lead, from a process that was lost to another
	passes       map[string]time.Duration // the longest that a due task waited for that, by what the process was lost to
	unmanned     time.Time                // since when there is no candidate; zero: there is one
	leaderless   time.Time
	blamedLeader bool
	quiet        time.Time  // no step is planned after it
	quietLead    leadership // the leader at that moment
}

// fault is an event that should not have happened. Its kind stays the same while a plan is shrunk.
type fault struct {
	Kind string
	At   time.Duration // since the beginning
	Text string
}

func (f fault) String() string { return fmt.Sprintf("%-14s at %-12v %s", f.Kind, f.At, f.Text) }

// verdict is the result of a plan.
type verdict struct {
	faults  []fault
	lines   []string
	slots   int
	runs    int
	tasks   int
	steps   int
	virtual time.Duration
	slowest time.Duration // the longest that a task took to begin, without a fault
	passes  map[string]time.Duration
}

// play runs a plan and judges it.
func play(t *testing.T, p *plan) (v verdict) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		if p.Begin != "" {
			at, err := time.Parse(time.RFC3339, p.Begin)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(at))
		}
		w := &world{t: t, plan: p, redis: newVirtualRedis(t), began: time.Now(), nodes: map[string]*node{}, ids: map[string]*node{}}
		w.book.world = w
		w.book.schedules = map[string]*timeline{}
		w.book.tasks = map[string]*duty{}
		w.run()
		v = w.verdict()
	})
	return v
}

func (w *world) with(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

// trace notes an event. The caller holds mu.
func (w *world) trace(format string, args ...any) {
	if len(w.lines) > 20_000 {
		w.lines = w.lines[10_000:]
	}
	w.lines = append(w.lines, fmt.Sprintf("%12v ", time.Since(w.began).Round(10*time.Microsecond))+fmt.Sprintf(format, args...))
}

// blame notes a fault. The caller holds mu.
func (w *world) blame(kind, format string, args ...any) {
	f := fault{Kind: kind, At: time.Since(w.began), Text: fmt.Sprintf(format, args...)}
	w.trace("FAULT %s %s", f.Kind, f.Text)
	if len(w.found) < 50 {
		w.found = append(w.found, f)
	}
}

// disturb notes that a fault of now may be felt until a moment.
func (w *world) disturb(until time.Time, why string) {
	w.pass = nil
	w.storms = append(w.storms, gap{time.Now(), until})
	if until.After(w.calm) {
		w.calm, w.why = until, why
	}
}

// run plays the plan to its end: the planned steps, then quiet, then all processes leave.
func (w *world) run() {
	ops := newLink(w.redis, w.plan.Seed, w.plan.Latency.d())
	rdb := w.dial(ops)
	defer rdb.Close()
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: namespace, Encryption: w.plan.encryption()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.operator = d
	if w.queue, err = queue.New(rdb, queue.Partition{Namespace: namespace}, queue.Caps{}); err != nil {
		w.t.Fatal(err)
	}
	if w.registry, err = instance.NewRegistry(rdb, namespace); err != nil {
		w.t.Fatal(err)
	}
	p, err := producer.New(rdb, namespace, producer.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.schedules = producer.NewSchedules(p, nil)
	if w.plan.hasEffects() {
		w.effects = openEffects(w.t)
		defer w.effects.close()
	}

	watching, stopWatching := context.WithCancel(context.Background())
	var helpers sync.WaitGroup
	helpers.Go(func() { w.watch(watching) })

	var steps sync.WaitGroup
	for i := range w.plan.Processes {
		p := &w.plan.Processes[i]
		steps.Go(func() {
			time.Sleep(p.Start.d())
			w.with(func() { w.trace("step start %s (%s)", p.Name, p.Release) })
			w.start(p)
		})
	}
	for i := range w.plan.Steps {
		s := &w.plan.Steps[i]
		steps.Go(func() {
			time.Sleep(s.At.d())
			w.with(func() { w.trace("step %s %s %s %v", s.Do, s.Process, s.Name, s.For.d()) })
			w.do(s)
		})
	}
	steps.Wait()
	time.Sleep(time.Until(w.began.Add(w.plan.For.d())))
	w.settle()
	stopWatching()
	helpers.Wait()
	w.dismiss()
	w.judge()
}

// dismiss stops the processes that are still there, and demands that each leaves in time.
func (w *world) dismiss() {
	var left []*node
	w.with(func() {
		for _, n := range w.nodes {
			left = append(left, n)
			if n.stopping.IsZero() {
				n.stopping = time.Now()
			}
		}
	})
	for _, n := range left {
		n.stop()
	}
	for _, n := range left {
		w.awaitEnd(n)
	}
}

// abandon is how long a run may take to return after its context ended; see consumer.
const abandon = 2 * time.Second

// awaitEnd demands that a process that was told to stop ends in time.
func (w *world) awaitEnd(n *node) {
	limit := n.plan.Drain.d() + abandon + max(2*n.plan.Lease.d(), 5*time.Second) + 6*time.Second
	select {
	case <-n.done:
	case <-time.After(limit):
		w.with(func() { w.blame("drain", "%s has not ended %v after it was told to stop", n.plan.Name, limit) })
		if testing.Verbose() {
			buf := make([]byte, 1<<20)
			w.t.Logf("%s", buf[:runtime.Stack(buf, true)])
		}
		<-n.done
	}
	w.with(func() {
		if n.err != nil && n.crashed.IsZero() {
			w.blame("error", "%s ended with: %v", n.plan.Name, n.err)
		}
	})
}
