package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// idle is S5: instances that may all take work, and have none.
var idle = &scenario{
	name: "S5", title: "Idle", once: true,
	columns: []column{
		{"calls_per_s_per_instance", "commands/s sent, an instance"}, {"commands_per_s_per_instance", "with those inside scripts (River: transactions)"},
		{"server_cpu_ms_per_s", "server CPU, ms/s"}, {"client_cpu_ms_per_s", "client CPU, ms/s"},
	},
	plan: func(quick bool, peer string) (list []params) {
		if peer == "raw" {
			return nil
		}
		seconds := sizes(quick, 3, 20)
		for _, n := range sizes(quick, []int{10}, []int{10, 100}) {
			list = append(list, params{Instances: n, Seconds: seconds, Concurrency: 10})
			if peer == "onbeat" {
				list = append(list, params{Instances: n, Seconds: seconds, Concurrency: 10, LeaseMs: 15_000})
			}
		}
		if peer == "onbeat" {
			list = append(list, params{Instances: 3, Seconds: seconds, BeatMs: 100})
		}
		return list
	},
	run: func(ctx context.Context, c *child, p peer) error {
		w := &c.Params
		if w.BeatMs > 0 {
			return runBeating(ctx, c, p)
		}
		o := c.options()
		o.share, o.servers = true, w.Instances
		t := newTally(1)
		if err := p.Dispatch(ctx, o, t.handle); err != nil {
			return err
		}
		// One task, so that the queue is one that is known and was emptied.
		if err := p.Bulk(ctx, numbered(1, 64, nil)); err != nil {
			return err
		}
		if err := t.wait(); err != nil {
			return err
		}
		c.rest(ctx, p.Calls)
		return t.once()
	},
}

// rest measures some seconds in which nothing is asked of the instances, after they had some to calm down.
func (c *child) rest(ctx context.Context, calls func() int64) {
	seconds := c.Params.Seconds
	time.Sleep(time.Duration(min(seconds, 5)) * time.Second)
	s := c.begin(ctx, calls)
	time.Sleep(time.Duration(seconds) * time.Second)
	x := s.end(ctx)
	each := x.Seconds * float64(c.Params.Instances)
	c.metrics["commands_per_s_per_instance"] = x.used.commands / each
	c.metrics["calls_per_s_per_instance"] = x.Calls / each
	c.metrics["server_cpu_ms_per_s"] = x.used.cpu / 1e3 / x.Seconds
	c.metrics["client_cpu_ms_per_s"] = x.CPU / 1e3 / x.Seconds
}

// runBeating is idle but for one schedule, whose slots are close together. It shows the cost of instances that have no other work.
// The instances have the default configuration: the leader claims, the others wait to take over.
func runBeating(ctx context.Context, c *child, p peer) error {
	var beats atomic.Int64
	for range c.Params.Instances {
		err := p.(cadencer).Cadence(ctx, 1, time.Duration(c.Params.BeatMs)*time.Millisecond, func(beat) { beats.Add(1) })
		if err != nil {
			return err
		}
	}
	c.rest(ctx, p.Calls)
	if beats.Load() == 0 {
		return errors.New("no slot of the beat was run")
	}
	return nil
}
