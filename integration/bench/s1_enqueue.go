package main

import (
	"context"
	"time"
)

// enqueue is S1: delayed tasks are added, by the peer's best bulk method, or one at a time from several goroutines.
var enqueue = &scenario{
	name: "S1", title: "Enqueue", onDisk: true,
	columns: []column{rate, serverCPU, commands, calls, bytesEach, clientCPU, allocs, {"call_p50_ms", "a call p50, ms"}, {"call_p99_ms", "p99, ms"}},
	plan: func(quick bool, peer string) []params {
		callers, batch := bulkOf(peer)
		n := sizes(quick, 10_000, 100_000)
		return []params{
			{How: "bulk", Tasks: n, Bytes: 64, Callers: callers, Batch: batch},
			{How: "one", Tasks: n, Bytes: 64, Callers: 16},
			{How: "one", Tasks: n / 10, Bytes: 64, Callers: 1},
			{How: "bulk", Tasks: n, Bytes: 1024, Callers: callers, Batch: batch},
		}
	},
	run: func(ctx context.Context, c *child, p peer) error {
		w := &c.Params
		due := time.Now().Add(farFuture)
		// One goes first, so that connections and scripts are there before memory is read.
		if err := p.Bulk(ctx, []work{{bytes: w.Bytes, due: due}}); err != nil {
			return err
		}
		tasks := numbered(w.Tasks, w.Bytes, func(i int) time.Time { return due.Add(time.Duration(i%100_000) * time.Millisecond) })
		add, batch := p.Bulk, w.Batch
		var took []time.Duration
		if w.How == "one" {
			batch, took = 16, make([]time.Duration, w.Tasks)
			add = func(ctx context.Context, tasks []work) error {
				for _, t := range tasks {
					from := time.Now()
					if err := p.One(ctx, t); err != nil {
						return err
					}
					took[t.n] = time.Since(from)
				}
				return nil
			}
		}
		s := c.begin(ctx, p.Calls)
		if err := spread(len(tasks), w.Callers, batch, func(from, to int) error { return add(ctx, tasks[from:to]) }); err != nil {
			return err
		}
		x := s.end(ctx)
		c.perTask(&x, w.Tasks)
		delays(c.metrics, "call", took)
		c.metrics["tasks_per_s"] = float64(w.Tasks) / x.Seconds
		c.metrics["bytes_per_task"] = x.used.bytes / float64(w.Tasks)
		return leaves(ctx, p, w.Tasks+1)
	},
}
