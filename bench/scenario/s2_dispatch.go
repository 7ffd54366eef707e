package scenario

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
)

// dispatch is S2, in which overdue tasks are run by a handler that does nothing, and S2t, in which the handler gets a payload
// of two fields that the peer, or the handler as the peer's documentation writes it, has decoded.
func dispatch(ctx context.Context, c *wire.Child) error {
	p, err := peer.Open(ctx, &c.Job)
	if err != nil {
		return err
	}
	defer p.Close()
	j := &c.Job.Params
	if err := fill(ctx, p, &c.Job, numbered(j.Tasks, j.Bytes, nil)); err != nil {
		return err
	}
	if err := drained(ctx, c, p, "", j.Tasks, options(&c.Job)); err != nil {
		return err
	}
	return empty(ctx, p, 0)
}

// drained is a stretch in which n tasks that are due are run. Its time is that from the start of the peer to the last
// handler.
func drained(ctx context.Context, c *wire.Child, p peer.Peer, name string, n int, o peer.Options) error {
	s := c.Begin(name, p.Calls)
	t := newTally(n, n)
	stop, err := p.Dispatch(ctx, o, t.handle)
	if err != nil {
		return err
	}
	if err := t.wait(); err != nil {
		return err
	}
	s.End(wire.Event{Tasks: n, Seconds: t.seconds(), Metrics: wire.Metrics{
		"tasks_per_s": float64(n) / t.seconds(), "first_ms": t.firstMs(),
	}})
	if err := stop(); err != nil {
		return err
	}
	return t.once()
}

// empty returns an error unless as many tasks are left as there should be.
func empty(ctx context.Context, p peer.Peer, want int64) error {
	left, err := p.Left(ctx)
	if err == nil && left != want {
		err = fmt.Errorf("%d tasks are left, not %d", left, want)
	}
	return err
}
