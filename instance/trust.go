package instance

import "time"

// trust moves the moment until which the stay believes its lease: measured from before the request that renewed it,
// less a margin, so that it ends before Redis could give the lease to anybody else.
func (s *Stay) trust(until time.Time) {
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

// overdue reports whether trust has ended by the wall clock. That may be set at any moment, so by itself it says nothing;
// but timers stand still while a machine is suspended, and it does not.
func (s *Stay) overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.trusted.IsZero() && s.wall().After(s.trusted)
}

// expired is closed when trust has ended.
func (s *Stay) expired() <-chan struct{} { return s.lost }
