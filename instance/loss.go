package instance

import "time"

// Loss is what Redis had answered and has not any more: it failed over to a replica that was behind, or died before its
// writes were on disk, or came back empty. What was written after Kept is lost; nobody can tell from when on more
// closely than by heartbeats, so a loss shorter than the time between two may go unseen.
type Loss struct {
	Kept  time.Time // the last heartbeat of anybody that Redis has; zero: it has none
	Known time.Time // the last one of this instance that was answered
}

// Loss is what Redis was last found to have lost, until [Stay.SettleLoss].
func (s *Stay) Loss() (Loss, bool) {
	l := s.loss.Load()
	if l == nil {
		return Loss{}, false
	}
	return *l, true
}

// SettleLoss says that a loss has been dealt with. One that was found meanwhile stays.
func (s *Stay) SettleLoss(l Loss) {
	if found := s.loss.Load(); found != nil && *found == l {
		s.loss.CompareAndSwap(found, nil)
	}
}

// lose notes a loss. One before it that has not been dealt with began it.
func (s *Stay) lose(l Loss) {
	if old := s.loss.Load(); old != nil {
		l.Known = old.Known
		if old.Kept.Before(l.Kept) {
			l.Kept = old.Kept
		}
	}
	s.loss.Store(&l)
}

// stamp is a time to the millisecond.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "nothing"
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

// heard takes in when Redis answered, and says so if it has lost what it had answered before. Then a leader takes stock
// again, whether or not its connection was seen to break.
func (m *Manager) heard(s *Stay, v View) {
	if v.Forgot {
		m.log.Warn().Str("kept", stamp(v.Kept)).Str("known", stamp(m.seen)).Msg("redis lost its last writes")
		s.lose(Loss{Kept: v.Kept, Known: m.seen})
		s.again.Store(true)
		s.claims.Store(true)
		s.wake(0)
		s.Schedules.Ring()
	}
	m.seen, m.led = v.Now, v.Open && v.Leader != ""
}
