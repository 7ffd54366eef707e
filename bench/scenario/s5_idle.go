package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
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
	if j.BeatMs > 0 {
		return beating(ctx, c, p)
	}
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

// beating is idle but for one schedule, whose slots are close together: what its instances cost, which otherwise have no work.
// They are as a program has them that configures nothing: the leader claims, the others wait to take over.
func beating(ctx context.Context, c *wire.Child, p peer.Peer) (err error) {
	o, ok := p.(*peer.Onbeat)
	if !ok {
		return fmt.Errorf("%s is not measured with a beat", c.Job.Peer)
	}
	j := &c.Job.Params
	var beats atomic.Int64
	calls := make([]func() int64, j.Instances)
	for i := range calls {
		var stop func() error
		calls[i], stop, err = o.Beat(ctx, 1, time.Duration(j.BeatMs)*time.Millisecond, func(peer.Beat) { beats.Add(1) })
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	time.Sleep(settling(j.Seconds))
	s := c.Begin("", p.Calls)
	ran, before := beats.Load(), read(calls)
	time.Sleep(time.Duration(j.Seconds) * time.Second)
	after, seconds := read(calls), float64(j.Seconds)
	ran = beats.Load() - ran

	m := wire.Metrics{"beats_per_s": float64(ran) / seconds}
	each := make([]float64, len(calls))
	for i := range calls {
		each[i] = float64(after[i]-before[i]) / seconds
		m["calls_per_s"] += each[i]
	}
	slices.Sort(each)
	slices.Reverse(each)
	for i, n := range each { // 1 is the busiest, which is the leader
		m[fmt.Sprintf("calls_%d_per_s", i+1)] = n
	}
	s.End(wire.Event{Instances: j.Instances, Seconds: seconds, Metrics: m})
	if ran == 0 {
		return errors.New("no slot of the beat was run")
	}
	return nil
}

// read reads counters.
func read(counters []func() int64) []int64 {
	list := make([]int64, len(counters))
	for i, n := range counters {
		list[i] = n()
	}
	return list
}

// settling is how long instances get to calm down.
func settling(seconds int) time.Duration { return time.Duration(min(seconds, 5)) * time.Second }
