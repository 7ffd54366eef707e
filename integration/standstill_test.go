package integration

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// standstill is how long this process stood still at most: a machine that others share, or that is suspended, stops all processes on it,
// and no program keeps a beat then.
type standstill struct{ longest atomic.Int64 }

const stillTick = 20 * time.Millisecond

// watchStandstill watches until the test ends.
func watchStandstill(t *testing.T) *standstill {
	t.Helper()
	s, stop, stopped := &standstill{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(stillTick)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-tick.C:
			case <-stop:
				return
			}
			now := time.Now()
			if d := now.Round(0).Sub(last.Round(0)) - stillTick; d > time.Duration(s.longest.Load()) {
				s.longest.Store(int64(d))
			}
			last = now
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return s
}

// excuse is how much longer a gap may be. A soak takes no excuse.
func (s *standstill) excuse() time.Duration {
	if testredis.Soak() {
		return 0
	}
	return 2 * time.Duration(s.longest.Load()) // the others must have a turn, too, before the beat goes on
}
