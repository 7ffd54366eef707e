package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// scenario says what to do with a peer while it is measured: one file each.
type scenario struct {
	name, title string
	columns     []column
	once        bool // peers other than onbeat are measured once: one run shows their polling, or compares them with themselves
	onDisk      bool // it is also measured with an append-only file
	aside       bool // it is measured only if it is named, and needs the onbeat program. Its figures are ratios to its first row.
	plan        func(quick bool, peer string) []params
	run         func(ctx context.Context, c *child, p peer) error
}

// sizes picks the numbers of a quick bench or of a full one.
func sizes[T any](quick bool, few, many T) T {
	if quick {
		return few
	}
	return many
}

// setting is how many servers a process has, and how many handlers each of them runs at once.
type setting struct{ servers, concurrency int }

// candidates are the settings that a search for a peer's best goes through. The first is a good one, for where no search is made.
var candidates = map[string][]setting{
	"onbeat":  {{1, 1000}, {1, 200}, {1, 500}, {1, 2000}, {1, 4000}},
	"raw":     {{2, 500}, {1, 100}, {1, 500}, {1, 1000}, {2, 100}, {2, 1000}, {4, 100}, {4, 500}},
	"asynq":   {{16, 10}, {1, 25}, {1, 50}, {4, 10}, {4, 25}, {8, 10}, {8, 25}, {16, 5}, {16, 25}, {32, 10}},
	"faktory": {{1, 100}, {1, 20}, {1, 50}, {1, 200}, {1, 500}},
	"bullmq":  {{1, 100}, {1, 50}, {1, 200}, {1, 500}, {1, 1000}, {2, 100}, {2, 250}, {4, 50}, {4, 100}},
	"river":   {{1, 1000}, {1, 100}, {1, 500}, {2, 250}, {2, 500}}, // tuned
}

// bulkOf is how a peer's bulk method is used: callers at once, tasks a call.
func bulkOf(peer string) (callers, batch int) {
	switch peer {
	case "asynq": // its only method adds one
		return 100, 100
	case "bullmq":
		return 4, 500
	}
	return 4, 1000
}

// patience is how long nothing may happen before a run is given up.
const patience = 60 * time.Second

// farFuture is when tasks are due that are not to be run.
const farFuture = 30 * 24 * time.Hour

// fill adds tasks by the peer's best method, from several callers.
func fill(ctx context.Context, j *job, p peer, tasks []work) error {
	callers, batch := bulkOf(j.Peer)
	return spread(len(tasks), callers, batch, func(from, to int) error { return p.Bulk(ctx, tasks[from:to]) })
}

// spread calls fn for parts of n, by several callers at once, and returns the first error.
func spread(n, callers, part int, fn func(from, to int) error) error {
	var next atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, callers)
	for range callers {
		all.Go(func() {
			for {
				from := int(next.Add(int64(part))) - part
				if from >= n {
					return
				}
				if err := fn(from, min(from+part, n)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	return <-failed
}

// numbered makes n tasks; due may be nil.
func numbered(n, size int, due func(i int) time.Time) []work {
	tasks := make([]work, n)
	for i := range tasks {
		tasks[i] = work{n: i, bytes: size}
		if due != nil {
			tasks[i].due = due(i)
		}
	}
	return tasks
}

// options are the options of a job.
func (j *job) options() options {
	w := &j.Params
	return options{concurrency: w.Concurrency, servers: w.Servers, tuned: w.Tuned, lease: time.Duration(w.LeaseMs) * time.Millisecond}
}

// leaves waits until as many tasks are left as there should be, for as long as there are ever fewer.
func leaves(ctx context.Context, p peer, want int) error {
	least, since := int64(math.MaxInt64), time.Now()
	for ; ; time.Sleep(20 * time.Millisecond) {
		left, err := p.Left(ctx)
		if err != nil || left == int64(want) {
			return err
		}
		if left < least {
			least, since = left, time.Now()
		}
		if time.Since(since) > patience {
			return fmt.Errorf("%d tasks are left, not %d", left, want)
		}
	}
}

// tally counts how often each task is handled. The bench injects no faults, so anything but once is an error.
type tally struct {
	began   time.Time
	times   []atomic.Uint32
	strange atomic.Int64 // handled numbers that are none
	handled atomic.Int64
	first   atomic.Int64  // ns since began
	last    atomic.Int64  // of the last of all
	all     chan struct{} // closed when as many were handled as there are
}

func newTally(n int) *tally {
	return &tally{times: make([]atomic.Uint32, n), all: make(chan struct{}), began: time.Now()}
}

func (t *tally) handle(n int) {
	if n < 0 || n >= len(t.times) {
		t.strange.Add(1)
		return
	}
	t.times[n].Add(1)
	k := t.handled.Add(1)
	if k == 1 {
		t.first.Store(int64(time.Since(t.began)))
	}
	if k == int64(len(t.times)) {
		t.last.Store(int64(time.Since(t.began)))
		close(t.all)
	}
}

// wait waits until all are handled, for as long as some are.
func (t *tally) wait() error {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for seen := int64(-1); ; {
		select {
		case <-t.all:
			return nil
		case <-tick.C:
			k := t.handled.Load()
			if k == seen {
				return fmt.Errorf("only %d of %d tasks were handled, and no other in %s", k, len(t.times), patience)
			}
			seen = k
		}
	}
}

// counts are the times each task was handled.
func (t *tally) counts() []byte {
	b := make([]byte, len(t.times))
	for i := range t.times {
		b[i] = byte(min(t.times[i].Load(), 255))
	}
	return b
}

func (t *tally) once() error {
	if n := t.strange.Load(); n > 0 {
		return fmt.Errorf("%d runs of tasks that nobody added", n)
	}
	return exactlyOnce(t.counts())
}

// exactlyOnce returns an error unless each count is one.
func exactlyOnce(counts []byte) error {
	var never, more int
	for _, n := range counts {
		switch {
		case n == 0:
			never++
		case n > 1:
			more++
		}
	}
	if never+more > 0 {
		return fmt.Errorf("not exactly once: of %d tasks, %d were never handled and %d more than once", len(counts), never, more)
	}
	return nil
}

// delays adds the points of a distribution in milliseconds: name_p50_ms and so on, and name_max_ms. It sorts the list, and returns
// how many are below zero.
func delays(m metrics, name string, list []time.Duration) (early float64) {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	for _, q := range []float64{50, 90, 99, 99.9} {
		m[name+"_p"+strconv.FormatFloat(q, 'f', -1, 64)+"_ms"] = ms(list[min(int(q/100*float64(len(list))), len(list)-1)])
	}
	m[name+"_max_ms"] = ms(list[len(list)-1])
	below, _ := slices.BinarySearch(list, 0)
	return float64(below)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
