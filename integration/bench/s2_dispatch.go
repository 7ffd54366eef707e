package main

import (
	"context"
	"errors"
	"time"
)

// dispatch is S2: overdue tasks are run by a handler that does nothing.
var dispatch = &scenario{
	name: "S2", title: "Dispatch", onDisk: true,
	columns: []column{rate, serverCPU, commands, calls, clientCPU, allocs, {"first_ms", "first task, ms"}},
	plan:    planDispatch,
	run:     runDispatch,
}

// typedDispatch is S2t: the handler gets a payload of two fields that the peer, or the handler as the peer's documentation writes
// it, has decoded.
var typedDispatch = &scenario{
	name: "S2t", title: "Dispatch to a typed handler",
	columns: []column{rate, serverCPU, calls, clientCPU, allocs},
	plan: func(quick bool, peer string) []params {
		if peer == "raw" { // it has no handlers
			return nil
		}
		return planDispatch(quick, peer)
	},
	run: runDispatch,
}

func planDispatch(quick bool, peer string) (list []params) {
	tasks := sizes(quick, 10_000, 100_000)
	for _, n := range []int{10, 100} {
		w := params{Tasks: tasks, Bytes: 64, Concurrency: n, Servers: 1}
		if peer == "river" { // it takes so many each 100 ms, and no more
			w.Tasks = min(w.Tasks, 200*n)
		}
		list = append(list, w)
	}
	return append(list, params{Tasks: tasks, Bytes: 64, Best: true})
}

func runDispatch(ctx context.Context, c *child, p peer) error {
	return drain(ctx, c, p, 0)
}

// drain adds tasks that are due, and measures the stretch in which they run while others stay. The time runs from the start of the
// peer to the last handler.
func drain(ctx context.Context, c *child, p peer, others int) error {
	n := c.Params.Tasks
	if err := fill(ctx, &c.job, p, numbered(n, c.Params.Bytes, nil)); err != nil {
		return err
	}
	o := c.options()
	o.typed = c.Scenario == "S2t"
	s := c.begin(ctx, p.Calls)
	t := newTally(n)
	if err := p.Dispatch(ctx, o, t.handle); err != nil {
		return err
	}
	if err := t.wait(); err != nil {
		return err
	}
	x := s.end(ctx)
	c.perTask(&x, n)
	c.metrics["tasks_per_s"] = float64(n) / time.Duration(t.last.Load()).Seconds()
	c.metrics["first_ms"] = ms(time.Duration(t.first.Load()))
	return errors.Join(leaves(ctx, p, others), t.once())
}
