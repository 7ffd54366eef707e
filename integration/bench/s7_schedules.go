package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// schedules is S7, of onbeat alone: very many schedules on one leader, all on the same slot.
var schedules = &scenario{
	name: "S7", title: "Schedules",
	columns: append([]column{
		{"in_set_before", "in the set 0.5 s before"}, {"lag_p50_ms", "lag p50, ms"}, {"lag_p99_ms", "p99, ms"}, {"lag_max_ms", "max, ms"},
		{"leader_mb", "leader, MB"}, {"leader_heap_mb", "of that heap"}, {"client_cpu_us_per_task", "client CPU, µs a slot"},
	}, takeOverColumns...),
	plan: func(quick bool, peer string) (list []params) {
		if peer != "onbeat" {
			return nil
		}
		every := sizes(quick, 10, 60)
		for _, n := range sizes(quick, []int{1000}, []int{1000, 10_000, 100_000}) {
			w := params{Schedules: n, EveryS: every, Concurrency: 100}
			if n < 100_000 {
				w.EveryS = min(every, 20) // they need not wait a minute for a slot
			}
			list = append(list, w)
		}
		return list
	},
	run: runSchedules,
}

func runSchedules(ctx context.Context, c *child, p peer) error {
	w, o := &c.Params, p.(*onbeatPeer)
	every := time.Duration(w.EveryS) * time.Second
	m := c.metrics
	stopProbes := probe(ctx, o)
	a, err := newNode(ctx, o, w.Schedules, every, w.Concurrency)
	if err != nil {
		return err
	}
	if err := a.await(m, "startup"); err != nil {
		return err
	}
	stopProbes()
	// The first slot with time enough before it for every task to be pushed.
	top := time.Now().Add(min(every/2, 12*time.Second)).Truncate(every).Add(every)
	slot := &slotTally{newTally(w.Schedules), top, make([]time.Duration, w.Schedules)}
	a.slot.Store(slot)
	time.Sleep(time.Until(top.Add(-500 * time.Millisecond)))
	counts, err := o.d.Admin().Activity.Counts(ctx)
	if err != nil {
		return err
	}
	inSet := counts.Waiting + counts.Later
	m["in_set_before"] = float64(inSet)

	s := c.begin(ctx, o.Calls)
	if err := slot.wait(); err != nil {
		return err
	}
	x := s.end(ctx)
	c.perTask(&x, w.Schedules)
	delays(m, "lag", slot.late)
	m["leader_mb"], m["leader_heap_mb"] = memoryMB()
	if err := takeOvers(ctx, o, a, w.Schedules, every, m); err != nil {
		return err
	}
	if inSet < int64(w.Schedules) {
		return fmt.Errorf("half a second before the slot, %d of its %d tasks were in the set", inSet, w.Schedules)
	}
	return slot.once()
}

// slotTally counts the tasks of one slot, and how late each began.
type slotTally struct {
	*tally
	at   time.Time
	late []time.Duration
}

func (s *slotTally) handle(t *task.Task) {
	now := time.Now()
	if !t.Slot.Equal(s.at) {
		return
	}
	job, err := strconv.Atoi(string(t.Payload))
	if err == nil && job < len(s.late) {
		s.late[job] = now.Sub(s.at)
	}
	s.tally.handle(job)
}

// memoryMB is the memory that the process has now, in MB, and the part of it that is the Go heap in use.
func memoryMB() (rss, heap float64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b, _ := os.ReadFile("/proc/self/statm")
	if f := strings.Fields(string(b)); len(f) > 1 {
		pages, _ := strconv.ParseFloat(f[1], 64)
		rss = pages * float64(os.Getpagesize()) / 1e6
	}
	return rss, float64(m.HeapInuse) / 1e6
}

// node is an instance that can be started, stopped and cut off, and that says when it took its first task.
type node struct {
	rdb   redis.UniversalClient
	stop  func() error
	from  time.Time
	first atomic.Pointer[time.Time] // when it ran a probe for the first time since from
	knows atomic.Pointer[time.Time] // when it knew the slots of all schedules
	slot  atomic.Pointer[slotTally]
}

// newNode starts an instance that declares so many schedules, if any. Its time runs from here.
func newNode(ctx context.Context, o *onbeatPeer, declared int, every time.Duration, concurrency int) (n *node, err error) {
	n = &node{}
	cfg := onbeat.Config{Namespace: namespace, Concurrency: concurrency, Log: zerolog.New(n)}
	n.rdb, n.stop, err = o.start(ctx, cfg, func(d *onbeat.Dispatcher) error {
		err := errors.Join(
			d.Handle("bench", handlers.Func(func(context.Context, *task.Task) error {
				note(&n.first)
				return nil
			})),
			d.Handle("beat", handlers.Func(func(_ context.Context, t *task.Task) error {
				if s := n.slot.Load(); s != nil {
					s.handle(t)
				}
				return nil
			})))
		if declared > 0 {
			err = errors.Join(err, declare(d, declared, every))
		}
		n.from = time.Now()
		return err
	})
	return n, err
}

// note keeps the first moment.
func note(at *atomic.Pointer[time.Time]) {
	now := time.Now()
	at.CompareAndSwap(nil, &now)
}

// Write is given the log of the instance: the log says when the instance has taken stock of the schedules.
func (n *node) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(`"message":"scheduling"`)) {
		note(&n.knows)
	}
	return len(line), nil
}

// await waits until the node has run a task and knows all schedules, and says how long each took.
func (n *node) await(m metrics, name string) error {
	for until := time.Now().Add(2 * patience); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if first, knows := n.first.Load(), n.knows.Load(); first != nil && knows != nil {
			m[name+"_ms"], m[name+"_knows_ms"] = ms(first.Sub(n.from)), ms(knows.Sub(n.from))
			return nil
		}
	}
	return fmt.Errorf("an instance did not take over in %s", 2*patience)
}

// again makes the time run from now.
func (n *node) again() {
	n.from = time.Now()
	n.first.Store(nil)
	n.knows.Store(nil)
}

// probe adds a due task every few milliseconds until it is stopped. The process that takes one leads.
func probe(ctx context.Context, o *onbeatPeer) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			_ = o.One(ctx, work{bytes: 64}) // one that fails is followed by another
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

var takeOverColumns = []column{
	{"startup_ms", "start, ms"}, {"startup_knows_ms", "all known, ms"},
	{"takeover_newer_ms", "newer takes over, ms"}, {"takeover_newer_knows_ms", "all known, ms"},
	{"takeover_resign_ms", "after a resignation, ms"}, {"takeover_resign_knows_ms", "all known, ms"},
	{"takeover_crash_ms", "after a cut cable, ms"}, {"takeover_crash_knows_ms", "all known, ms"},
}

// takeOvers measures how long it takes until another instance works, and knows all schedules: a newer one that starts, the old one
// when the newer resigns, and when the newer is cut off from Redis (which includes its lease). a is the one that runs, or nil.
func takeOvers(ctx context.Context, o *onbeatPeer, a *node, declared int, every time.Duration, m metrics) (err error) {
	stopProbes := probe(ctx, o)
	defer stopProbes()
	const concurrency = 10
	if a == nil {
		if a, err = newNode(ctx, o, declared, every, concurrency); err != nil {
			return err
		}
		if err := a.await(m, "startup"); err != nil {
			return err
		}
	}
	b, err := newNode(ctx, o, declared, every, concurrency)
	if err != nil {
		return err
	}
	if err := b.await(m, "takeover_newer"); err != nil {
		return err
	}
	a.again()
	if err := b.stop(); err != nil {
		return err
	}
	if err := a.await(m, "takeover_resign"); err != nil {
		return err
	}

	if b, err = newNode(ctx, o, declared, every, concurrency); err != nil {
		return err
	}
	if err := b.await(metrics{}, ""); err != nil {
		return err
	}
	a.again()
	if err := b.rdb.Close(); err != nil { // as if the cable had been pulled
		return err
	}
	if err := a.await(m, "takeover_crash"); err != nil {
		return err
	}
	_ = b.stop() // it cannot say goodbye
	stopProbes()
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if c, err := o.d.Admin().Activity.Counts(ctx); err == nil && c.Waiting+c.Running == 0 {
			break // every probe is done
		}
	}
	return a.stop()
}
