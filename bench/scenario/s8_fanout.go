package scenario

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
)

// fanout is S8: several processes take from one due set. The first fills it; the parent lets all begin at once, adds up
// what they say they handled, and tells them to stop.
func fanout(ctx context.Context, c *wire.Child) error {
	p, err := peer.Open(ctx, &c.Job)
	if err != nil {
		return err
	}
	defer p.Close()
	j := &c.Job.Params
	if c.Job.Part == 0 {
		if err := fill(ctx, p, &c.Job, numbered(j.Tasks, j.Bytes, nil)); err != nil {
			return err
		}
	}
	o := options(&c.Job)
	o.Share = true

	s := c.Begin("", p.Calls)
	t := newTally(j.Tasks, 0)
	stop, err := p.Dispatch(ctx, o, t.handle)
	if err != nil {
		return err
	}
	ours, isOnbeat := p.(*peer.Onbeat)
	claims := func() (all, empty int64) {
		if isOnbeat {
			return ours.Claims.All.Load(), ours.Claims.Empty.Load()
		}
		return 0, 0
	}
	last, all, none := follow(c, t, claims)
	m := wire.Metrics{}
	if isOnbeat {
		m["claims"], m["empty_claims"] = float64(all), float64(none)
	}
	if err := stop(); err != nil {
		return err
	}
	s.End(wire.Event{Tasks: int(t.handled.Load()), Seconds: last.Seconds(), Metrics: m, Handled: t.counts()})
	return nil
}

// follow tells the parent how many are handled until it says that is all. It returns when the last was, and the claims,
// and the empty ones among them, from the first task to the last: while there was work.
func follow(c *wire.Child, t *tally, claims func() (all, empty int64)) (last time.Duration, all, none int64) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	var all0, none0 int64
	for seen := int64(0); ; {
		select {
		case <-tick.C:
		case <-c.Stopped():
			return last, all - all0, none - none0
		}
		n := t.handled.Load()
		if n == seen {
			continue
		}
		all, none = claims()
		if seen == 0 {
			all0, none0 = all, none
		}
		seen, last = n, time.Since(t.began)
		c.Say(wire.Event{Do: "handled", N: int(n)})
	}
}
