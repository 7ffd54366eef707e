package instance

import "time"

// Loss is a span of writes that Redis had answered and has lost since: it failed over to a replica that was behind, died
// before its writes were on disk, or came back empty. The writes after Kept may be lost. Only heartbeats show where the
// span begins, so a loss shorter than the time between two heartbeats may go unseen.
type Loss struct {
	Kept  time.Time // the last heartbeat of any instance that Redis still has; zero: it has none
	Known time.Time // the last heartbeat of this instance that Redis answered
}

// Loss returns the last loss that was found, and false if there is no loss or the caller has settled it with
// [Session.SettleLoss].
func (s *Session) Loss() (Loss, bool) {
	l := s.loss.Load()
	if l == nil {
		return Loss{}, false
	}
	return *l, true
}

// SettleLoss marks a loss as dealt with. A loss that was found meanwhile stays.
func (s *Session) SettleLoss(l Loss) {
	if found := s.loss.Load(); found != nil && *found == l {
		s.loss.CompareAndSwap(found, nil)
	}
}

// lose notes a loss. If an earlier one has not been dealt with, the new one begins where that began.
func (s *Session) lose(l Loss) {
	if old := s.loss.Load(); old != nil {
		l.Known = old.Known
		if old.Kept.Before(l.Kept) {
			l.Kept = old.Kept
		}
	}
	s.loss.Store(&l)
}

// stamp formats a time to the millisecond.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "nothing"
	}
	return t.Format("2006-01-02T15:04:05.000Z07:00")
}

// heard notes when Redis answered, and logs it if Redis has lost writes that it had answered. Then a leader reads all
// schedules again, even if no connection broke.
func (m *Manager) heard(s *Session, v View) {
	if v.Forgot {
		m.log.Warn().Str("kept", stamp(v.Kept)).Str("known", stamp(m.seen)).Msg("redis lost its last writes")
		s.lose(Loss{Kept: v.Kept, Known: m.seen})
		s.again.Store(true)
		s.claims.Store(true)
		s.wake(0)
		s.Schedules.Ring()
	}
	m.seen, m.led = v.Now, v.Open && v.Leader != ""
	if m.cfg.Observer != nil {
		m.cfg.Observer.Heard(v)
	}
}
