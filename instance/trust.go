package instance

import "time"

// trust moves the moment until which the session trusts its lease. The caller counts it from before the request that renewed
// the lease, less a margin, so that trust ends before Redis could declare this instance dead.
func (s *Session) trust(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trusted = until.Round(0)
	if s.trustTimer == nil {
		s.trustTimer = time.AfterFunc(time.Until(until), func() {
			close(s.lost)
			s.end(ErrLeaseLost)
		})
		return
	}
	// A timer that has fired is not set again: trust that ended does not come back.
	if s.trustTimer.Stop() {
		s.trustTimer.Reset(time.Until(until))
	}
}

// overdue reports whether trust has ended by the wall clock. By itself that proves nothing, because the clock may be set at
// any moment. But while a machine is suspended, timers stand still and the wall clock does not.
func (s *Session) overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.trusted.IsZero() && s.wall().After(s.trusted)
}

// expired returns a channel that is closed when trust has ended.
func (s *Session) expired() <-chan struct{} { return s.lost }
