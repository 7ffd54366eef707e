package instance

import (
	"cmp"
	"errors"
	"fmt"
)

// Unready returns nil while this process's instance is registered and ready, and Redis answered its last heartbeat within the
// time for which it trusts its lease. Otherwise the error says in one line why not. A ready instance need not lead, nor be
// allowed to claim: a standby is ready too. Unready asks the process, not Redis, and is safe for concurrent use.
func (m *Manager) Unready() error {
	s := m.current.Load()
	switch {
	case m.over.Load():
		return errors.New("stopped: the instance has left")
	case s == nil:
		return errors.New("not registered: redis has not answered yet")
	}
	err := s.unready()
	if away, ok := errors.AsType[*awayError](err); ok {
		away.joined = m.joined.Load()
	}
	return err
}

// awayError says that Redis has not answered lately.
type awayError struct {
	text   string
	joined bool // the instance was ready before
}

func (e *awayError) Error() string { return e.text }

// OfAway reports whether an instance that was ready before is unready only because its Redis has not answered lately.
func OfAway(err error) bool {
	away, ok := errors.AsType[*awayError](err)
	return ok && away.joined
}

func (s *Session) unready() error {
	overdue := s.overdue()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.resigned:
		return errors.New("draining: the instance takes no more work")
	case overdue || s.ctx.Err() != nil:
		return &awayError{text: fmt.Sprintf("not registered: the lease ran out, because redis has not answered for %s", s.lease)}
	case s.view.State == "starting":
		return errors.New("starting: " + cmp.Or(s.holds, "the readiness check has not passed, or min_ready has not gone by"))
	case s.view.State != "ready":
		return fmt.Errorf("%s: the instance takes no more work", cmp.Or(s.view.State, "not registered"))
	}
	return nil
}

// hold notes why a starting instance is not ready.
func (s *Session) hold(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds = why
}
