package scenario

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
)

// growth is S6: what everything costs when very many tasks of the far future are pending.
func growth(ctx context.Context, c *wire.Child) error {
	p, err := peer.Open(ctx, &c.Job)
	if err != nil {
		return err
	}
	defer p.Close()
	j := &c.Job.Params
	callers, batch := Bulk(c.Job.Peer)
	if err := bulk(ctx, p, []peer.Task{{Bytes: j.Bytes, Due: time.Now().Add(farFuture)}}, 1, 1); err != nil {
		return err
	}

	s := c.Begin("load", p.Calls)
	due := s.Began().Add(farFuture)
	// Made a part at a time: five million of them would be the memory that is measured.
	const part = 100_000
	for from := 0; from < j.Backlog; from += part {
		n := min(part, j.Backlog-from)
		tasks := numbered(n, j.Bytes, func(i int) time.Time { return due.Add(time.Duration(from+i) * time.Millisecond) })
		if err := bulk(ctx, p, tasks, callers, batch); err != nil {
			return err
		}
	}
	s.End(wire.Event{Tasks: j.Backlog})

	m := wire.Metrics{}
	if v, ok := p.(peer.Viewer); ok {
		if m["list_ms"], err = timed(21, func() error { return v.List(ctx) }); err != nil {
			return err
		}
		if m["scrape_ms"], err = timed(21, func() error { return v.Scrape(ctx) }); err != nil {
			return err
		}
	}
	if err := fill(ctx, p, &c.Job, numbered(j.Tasks, j.Bytes, nil)); err != nil {
		return err
	}
	if err := drained(ctx, c, p, "", j.Tasks, options(&c.Job)); err != nil {
		return err
	}
	if o, ok := p.(*peer.Onbeat); ok {
		if err := takeOvers(ctx, o, nil, nil, m); err != nil {
			return err
		}
	}
	c.Say(wire.Event{Do: "metrics", Metrics: m})
	return empty(ctx, p, int64(j.Backlog)+1)
}
