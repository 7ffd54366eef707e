package main

import (
	"context"
	"sync"
	"time"

	"github.com/onbeat/onbeat/bench/scenario"
	"github.com/onbeat/onbeat/bench/wire"
	"github.com/onbeat/onbeat/internal/precise"
)

// reference is what the machine itself makes of a delay, in the same seconds in which a peer's are measured and in another
// process: how late a bare sleep ends, and how late the answer comes to the one command that is sent then. No program that
// waits for a time and then asks Redis begins earlier.
type reference struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup

	slept, answered []time.Duration
}

// A sample is taken halfway between two slots, also of the quickest beat, so that it is in nobody's way.
const (
	sampleEvery = 100 * time.Millisecond
	sampleAt    = 50 * time.Millisecond
)

// watch takes samples until it is stopped. On a server without such a command it only sleeps.
func watch(ctx context.Context, srv reader) *reference {
	r := &reference{}
	ctx, r.cancel = context.WithCancel(ctx)
	redis, _ := srv.(interface {
		Ping(ctx context.Context) error
	})
	r.ended.Go(func() {
		for ctx.Err() == nil {
			at := time.Now().Truncate(sampleEvery).Add(sampleEvery + sampleAt)
			for rest := time.Until(at); rest > 0; rest = time.Until(at) {
				precise.Sleep(rest)
			}
			r.slept = append(r.slept, time.Since(at))
			if redis != nil && redis.Ping(ctx) == nil {
				r.answered = append(r.answered, time.Since(at))
			}
		}
	})
	return r
}

// stop waits for the last sample. It may be called again, and of none.
func (r *reference) stop() {
	if r != nil {
		r.cancel()
		r.ended.Wait()
	}
}

// result adds sleep_p99_ms, ping_p99_ms and so on to the figures of a run, and returns how many commands that took.
func (r *reference) result(m wire.Metrics) float64 {
	if r == nil {
		return 0
	}
	scenario.Delays(m, "sleep", r.slept)
	scenario.Delays(m, "ping", r.answered)
	return float64(len(r.answered))
}
