// Package scenario is what is done with a peer while it is measured: one file each. It runs in a process of its own,
// so that the processor time, allocations and memory measured are the peer's alone.
package scenario

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
)

// Run does what the job says.
func Run(ctx context.Context, c *wire.Child) error {
	run, ok := map[string]func(context.Context, *wire.Child) error{
		"S1": enqueue, "S2": dispatch, "S2t": dispatch, "S3": lag, "S4": cadence, "S5": idle, "S6": growth, "S7": schedules, "S8": fanout,
	}[c.Job.Scenario]
	if !ok {
		return fmt.Errorf("unknown scenario %q", c.Job.Scenario)
	}
	return run(ctx, c)
}

// patience is how long nothing may happen before a run is given up.
const patience = 60 * time.Second

// bulk adds tasks by the peer's best method, from several callers.
func bulk(ctx context.Context, p peer.Peer, tasks []peer.Task, callers, batch int) error {
	return spread(len(tasks), callers, batch, func(from, to int) error { return p.Bulk(ctx, tasks[from:to]) })
}

// spread calls fn for parts of n, by several callers at once, and returns the first error.
func spread(n, callers, part int, fn func(from, to int) error) error {
	parts := make(chan int, n/part+1)
	for from := 0; from < n; from += part {
		parts <- from
	}
	close(parts)
	failed := make(chan error, callers)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for from := range parts {
				if err := fn(from, min(from+part, n)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// numbered makes n tasks; due may be nil.
func numbered(n, size int, due func(i int) time.Time) []peer.Task {
	tasks := make([]peer.Task, n)
	for i := range tasks {
		tasks[i] = peer.Task{N: i, Bytes: size}
		if due != nil {
			tasks[i].Due = due(i)
		}
	}
	return tasks
}

// options are those of a job.
func options(j *wire.Job) peer.Options {
	return peer.Options{
		Concurrency: j.Params.Concurrency, Servers: j.Params.Servers, Tuned: j.Params.Tuned,
		Lease: time.Duration(j.Params.LeaseMs) * time.Millisecond, Typed: j.Scenario == "S2t",
	}
}

// fill is how tasks that are only there to be dispatched are added.
func fill(ctx context.Context, p peer.Peer, j *wire.Job, tasks []peer.Task) error {
	callers, batch := Bulk(j.Peer)
	return bulk(ctx, p, tasks, callers, batch)
}

// Bulk is how a peer's bulk method is used: callers at once, tasks a call.
func Bulk(name string) (callers, batch int) {
	switch name {
	case "asynq": // its only method adds one
		return 100, 100
	case "bullmq":
		return 4, 500
	}
	return 4, 1000
}
