package rig

import (
	"sync/atomic"
	"testing"
	"time"
)

// stall is the longest time by which this machine let a sleeping test oversleep: what it does to the test it does to the
// processes under test.
type stall struct{ worst atomic.Int64 }

// watchStalls measures until the test ends.
func watchStalls(t testing.TB) *stall {
	s, over := &stall{}, make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		const nap = 2 * time.Millisecond
		for {
			slept := time.Now()
			select {
			case <-over:
				return
			case <-time.After(nap):
			}
			if late := time.Since(slept) - nap; int64(late) > s.worst.Load() {
				s.worst.Store(int64(late))
			}
		}
	}()
	t.Cleanup(func() { close(over); <-done })
	return s
}

// Bound is a limit to a gap between runs, and what the machine adds to it: a gap lies between two runs in different
// processes, with Redis and a receiver besides, each of which it may have let wait as long.
func (w *World) Bound(gap time.Duration) time.Duration {
	return gap + 6*time.Duration(w.stalls.worst.Load())
}
