package instance

import (
	"context"
	"math/rand/v2"
	"time"
)

// readiness closes the channel when the check has passed, and passes again after MinReady. An instance that comes back
// after a lost lease has proven itself before, and does not wait again.
func (m *Manager) readiness(ctx context.Context, s *Session) <-chan struct{} {
	ready := make(chan struct{})
	wait := m.cfg.MinReady
	if m.proven {
		wait = 0
	}
	if m.cfg.ReadyCheck == nil && wait == 0 {
		close(ready)
		return ready
	}
	check, stop := context.WithCancel(s.ctx)
	unhook := context.AfterFunc(ctx, stop)
	go func() {
		defer stop()
		defer unhook()
		for m.passes(check) {
			if wait == 0 || pause(check, wait) && (m.cfg.ReadyCheck == nil || m.cfg.ReadyCheck(check) == nil) {
				close(ready)
				return
			}
		}
	}()
	return ready
}

// passes calls the check until it returns nil. It returns false if ctx ended first.
func (m *Manager) passes(ctx context.Context) bool {
	var b backoff
	for m.cfg.ReadyCheck != nil {
		err := m.cfg.ReadyCheck(ctx)
		if err == nil {
			break
		}
		if b.tries == 0 && ctx.Err() == nil {
			m.log.Warn().Err(err).Msg("not ready yet")
		}
		if !pause(ctx, b.next(m.cfg.heartbeat())) {
			return false
		}
	}
	return ctx.Err() == nil
}

// spread returns the time to the next heartbeat. It is a little random, so that instances started together spread out.
func (m *Manager) spread() time.Duration {
	h := m.cfg.heartbeat()
	return h - time.Duration(rand.Int64N(int64(h/10)+1))
}

// untilBeat returns the time to the next heartbeat. It is shorter if the leader's lease would run out before that: then a
// heartbeat at that moment elects another leader. It is also shorter if this instance's probation ends before.
func (m *Manager) untilBeat(s *Session) time.Duration {
	next := m.spread()
	for _, at := range []time.Time{s.reign, s.probation} {
		if !at.IsZero() {
			next = min(next, max(time.Until(at), 0)+time.Millisecond)
		}
	}
	return next
}

// backoff spaces tries: the pause doubles from a fiftieth of the limit, with jitter.
type backoff struct{ tries int }

func (b *backoff) next(limit time.Duration) time.Duration {
	d := min(limit, (limit/50)<<min(b.tries, 10))
	b.tries++
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

// pause waits for d. It returns false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
