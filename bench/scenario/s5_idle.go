package scenario

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
)

// idle is S5: instances that may all take work, and have none.
func idle(ctx context.Context, c *wire.Child) error {
	p, err := peer.Open(ctx, &c.Job)
	if err != nil {
		return err
	}
	defer p.Close()
	j := &c.Job.Params
	o := options(&c.Job)
	o.Share, o.Servers = true, j.Instances
	t := newTally(1, 1)
	stop, err := p.Dispatch(ctx, o, t.handle)
	if err != nil {
		return err
	}
	// One task, so that the queue is one that is known and was emptied.
	if err := p.Bulk(ctx, numbered(1, 64, nil)); err != nil {
		return err
	}
	if err := t.wait(); err != nil {
		return err
	}
	time.Sleep(settling(j.Seconds))
	s := c.Begin("", p.Calls)
	time.Sleep(time.Duration(j.Seconds) * time.Second)
	s.End(wire.Event{Instances: j.Instances, Seconds: float64(j.Seconds), Metrics: wire.Metrics{}})
	return errors.Join(stop(), t.once())
}

// settling is how long instances get to calm down.
func settling(seconds int) time.Duration { return time.Duration(min(seconds, 5)) * time.Second }
