package main

import (
	"context"
	"slices"
	"time"
)

// growth is S6: the cost of everything when very many tasks of the far future are pending.
var growth = &scenario{
	name: "S6", title: "Growth", once: true,
	columns: append([]column{rate, serverCPU, {"load_bytes_per_task", "bytes a task"}, {"list_ms", "list, ms"}, {"scrape_ms", "scrape, ms"}},
		takeOverColumns[0], takeOverColumns[2], takeOverColumns[4], takeOverColumns[6]),
	plan: func(quick bool, peer string) (list []params) {
		for _, n := range sizes(quick, []int{1000, 100_000}, []int{1000, 100_000, 1_000_000, 5_000_000}) {
			if peer == "onbeat" || peer == "raw" || peer == "asynq" && n <= 100_000 {
				usual := candidates[peer][0]
				list = append(list, params{Backlog: n, Tasks: sizes(quick, 10_000, 50_000), Bytes: 64, Concurrency: usual.concurrency, Servers: usual.servers})
			}
		}
		return list
	},
	run: func(ctx context.Context, c *child, p peer) (err error) {
		w := &c.Params
		if err := p.Bulk(ctx, []work{{bytes: w.Bytes, due: time.Now().Add(farFuture)}}); err != nil {
			return err
		}
		s := c.begin(ctx, p.Calls)
		due := s.began.Add(farFuture)
		// Made a part at a time: five million of them would be the memory that is measured.
		const part = 100_000
		for from := 0; from < w.Backlog; from += part {
			tasks := numbered(min(part, w.Backlog-from), w.Bytes, func(i int) time.Time { return due.Add(time.Duration(from+i) * time.Millisecond) })
			if err := fill(ctx, &c.job, p, tasks); err != nil {
				return err
			}
		}
		x := s.end(ctx)
		c.metrics["load_bytes_per_task"] = x.used.bytes / float64(w.Backlog)
		o, isOnbeat := p.(*onbeatPeer)
		if isOnbeat {
			if c.metrics["list_ms"], err = timed(ctx, o.list); err != nil {
				return err
			}
			if c.metrics["scrape_ms"], err = timed(ctx, o.scrape); err != nil {
				return err
			}
		}
		if err := drain(ctx, c, p, w.Backlog+1); err != nil {
			return err
		}
		if isOnbeat {
			if err := takeOvers(ctx, o, nil, 0, 0, c.metrics); err != nil {
				return err
			}
		}
		return leaves(ctx, p, w.Backlog+1)
	},
}

// timed is the median time of 21 calls, in milliseconds.
func timed(ctx context.Context, fn func(context.Context) error) (float64, error) {
	list := make([]time.Duration, 21)
	for i := range list {
		from := time.Now()
		if err := fn(ctx); err != nil {
			return 0, err
		}
		list[i] = time.Since(from)
	}
	slices.Sort(list)
	return ms(list[len(list)/2]), nil
}
