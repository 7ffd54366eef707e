package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/onbeat/onbeat/bench/peer"
	"github.com/onbeat/onbeat/bench/wire"
)

// lag is S3: tasks are due at random milliseconds, and the start of each handler is compared with that.
func lag(ctx context.Context, c *wire.Child) error {
	p, err := peer.Open(ctx, &c.Job)
	if err != nil {
		return err
	}
	defer p.Close()
	j := &c.Job.Params
	n := j.Rate * j.Seconds
	from := time.Now().Add(3*time.Second + time.Duration(n)*time.Second/8000).Truncate(time.Millisecond)
	random := rand.New(rand.NewPCG(uint64(c.Job.Run), 42))
	tasks := numbered(n, j.Bytes, func(int) time.Time {
		return from.Add(time.Duration(random.IntN(j.Seconds*1000)) * time.Millisecond)
	})
	if err := fill(ctx, p, &c.Job, tasks); err != nil {
		return err
	}
	if time.Until(from) < time.Second {
		return errors.New("adding the tasks took so long that the first are due")
	}

	t := newTally(n, n)
	late := make([]time.Duration, n)
	s := c.Begin("", p.Calls)
	stop, err := p.Dispatch(ctx, options(&c.Job), func(i int) {
		now := time.Now()
		if i >= 0 && i < n {
			late[i] = now.Sub(tasks[i].Due)
		}
		t.handle(i)
	})
	if err != nil {
		return err
	}
	if err := t.wait(); err != nil {
		return err
	}
	seconds := time.Since(s.Began()).Seconds()
	if err := stop(); err != nil {
		return err
	}
	m := wire.Metrics{}
	quantiles(m, "lag", late)
	s.End(wire.Event{Tasks: n, Seconds: seconds, Metrics: m})
	if c.Job.Peer == "onbeat" && m["early"] > 0 { // which it promises; for the others it is a figure
		return fmt.Errorf("%v tasks began before they were due", m["early"])
	}
	return errors.Join(t.once(), empty(ctx, p, 0))
}
