package doctor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// The latency check stops after this many calls, or after this time.
const (
	latencyCalls = 200
	latencyTime  = 2 * time.Second
)

// latency measures the round trip alone, then with a small script. Both call TIME, because Redis refuses PING while it cannot
// save to its disk.
func (d *doctor) latency(ctx context.Context) {
	trip, err := measure(ctx, func() error { return d.node.Time(ctx).Err() })
	if err != nil {
		d.fail("latency", "", "%v", err)
		return
	}
	script, err := measure(ctx, func() error {
		if d.bare {
			return d.node.Eval(ctx, `return redis.call("TIME")`, nil).Err()
		}
		err := d.node.Eval(ctx, `return {redis.call("TIME"), redis.call("HGET", KEYS[1], "gen")}`, []string{d.q.Keys().Meta}).Err()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	if err != nil {
		d.fail("latency", d.cure(err, "the user needs EVAL"), "%v", err)
		return
	}
	const format = "round trip %s, script %s (p50/p99/max of %d)"
	if p99 := at99(script); p99 > 20*time.Millisecond {
		d.warn("latency", "see redis-cli --latency and SLOWLOG; each task waits for this twice", format, spread(trip), spread(script), len(script))
		return
	}
	d.ok("latency", format, spread(trip), spread(script), len(script))
}

// measure returns the durations of the calls, sorted.
func measure(ctx context.Context, call func() error) ([]time.Duration, error) {
	var took []time.Duration
	began := time.Now()
	for len(took) < latencyCalls && time.Since(began) < latencyTime && ctx.Err() == nil {
		asked := time.Now()
		if err := call(); err != nil {
			return nil, err
		}
		took = append(took, time.Since(asked))
	}
	slices.Sort(took)
	return took, ctx.Err()
}

func at99(sorted []time.Duration) time.Duration { return sorted[len(sorted)*99/100] }

func spread(sorted []time.Duration) string {
	return fine(sorted[len(sorted)/2]) + "/" + fine(at99(sorted)) + "/" + fine(sorted[len(sorted)-1])
}

func fine(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// clock compares this machine's clock with the clock of Redis. The result is information only: nothing depends on this
// machine's clock.
func (d *doctor) clock(ctx context.Context) {
	asked := time.Now()
	there, err := d.q.Now(ctx)
	if err != nil {
		d.fail("clock", "", "%v", err)
		return
	}
	took := time.Since(asked)
	skew := asked.Add(took / 2).Sub(there).Round(time.Millisecond)
	switch {
	case skew.Abs() <= took+time.Millisecond:
		d.ok("clock", "this machine and Redis agree")
	case skew > 0:
		d.ok("clock", "this machine is %s ahead of Redis, whose clock decides", skew)
	default:
		d.ok("clock", "this machine is %s behind Redis, whose clock decides", -skew)
	}
}
