package main

import (
	"context"
	"errors"
	"time"
)

// partitioned is S9: the cost of splitting a namespace. All partitions lie on one server, so the figures are the cost of a task with
// and without partitions, and no claim about several nodes.
var partitioned = &scenario{
	name: "S9", title: "Partitions",
	columns: []column{
		rate, serverCPU, commands, calls, clientCPU, {"enqueue_server_cpu_us", "adding: server CPU, µs"}, {"enqueue_client_cpu_us", "adding: client CPU, µs"},
		{"idle_calls_per_s", "idle: commands/s sent"}, {"idle_server_cpu_ms_per_s", "idle: server CPU, ms/s"},
	},
	plan: func(quick bool, peer string) (list []params) {
		if peer != "onbeat" {
			return nil
		}
		for _, n := range []int{1, 3, 16} {
			list = append(list, params{Tasks: sizes(quick, 20_000, 200_000), Bytes: 64, Concurrency: 1000, Partitions: n, Seconds: sizes(quick, 2, 5)})
		}
		return list
	},
	run: func(ctx context.Context, c *child, p peer) error {
		n := c.Params.Tasks
		s := c.begin(ctx, p.Calls)
		due := time.Now().Add(3*time.Second + time.Duration(n)*20*time.Microsecond)
		if err := fill(ctx, &c.job, p, numbered(n, c.Params.Bytes, func(int) time.Time { return due })); err != nil {
			return err
		}
		x := s.end(ctx)
		c.metrics["enqueue_server_cpu_us"] = x.used.cpu / float64(n)
		c.metrics["enqueue_client_cpu_us"] = x.CPU / float64(n)
		t := newTally(n)
		if err := p.Dispatch(ctx, c.options(), t.handle); err != nil {
			return err
		}
		if time.Until(due) < 2*time.Second {
			return errors.New("adding the tasks took so long that they are due as soon as the dispatcher has started")
		}
		time.Sleep(time.Until(due) - time.Second)
		s = c.begin(ctx, p.Calls) // the cost of the start is not part of a task
		if err := t.wait(); err != nil {
			return err
		}
		x = s.end(ctx)
		c.perTask(&x, n)
		c.metrics["tasks_per_s"] = float64(n) / (time.Duration(t.last.Load()) - due.Sub(t.began)).Seconds()
		if err := leaves(ctx, p, 0); err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		s = c.begin(ctx, p.Calls)
		time.Sleep(time.Duration(c.Params.Seconds) * time.Second)
		x = s.end(ctx)
		c.metrics["idle_calls_per_s"] = x.Calls / x.Seconds
		c.metrics["idle_server_cpu_ms_per_s"] = x.used.cpu / 1e3 / x.Seconds
		return t.once()
	},
}
