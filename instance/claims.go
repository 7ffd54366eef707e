package instance

import (
	"sync/atomic"
	"time"
)

// claims is what this process knows of the due work that it may claim, over all its sessions.
type claims struct {
	caughtUp atomic.Int64 // unix ms
	lagging  atomic.Bool
}

// CaughtUp notes an answer to a call that claims: at that moment, by the clock of Redis, this process had claimed all due work that
// it may claim.
func (s *Session) CaughtUp(at time.Time) { s.claimed.caughtUp.Store(at.UnixMilli()) }

// Lags notes whether due work may wait that this process has not claimed: its last call failed, left due work, or claimed as many
// tasks as it asked for.
func (s *Session) Lags(lags bool) { s.claimed.lagging.Store(lags) }

// Claimed returns the moment up to which this process has claimed all due work, as far as [Session.CaughtUp] was told (zero: never),
// and whether it lags. If Redis loses its memory, slots due up to that moment need not run again.
func (s *Session) Claimed() (upTo time.Time, lags bool) {
	if s.claimed == nil { // a session that no manager made
		return upTo, false
	}
	if ms := s.claimed.caughtUp.Load(); ms > 0 {
		upTo = time.UnixMilli(ms)
	}
	return upTo, s.claimed.lagging.Load()
}
