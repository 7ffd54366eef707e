package instance

import "context"

// Attend calls fn in each term of this instance, beside [Session.Lead], until the session ends or drains. It is for work
// that only one instance must do, and that must not delay the lead. Fn's context ends with the term; then fn must return. If fn
// returns earlier, Attend calls it again in the next term. Two instances may run it for a moment, because an instance that is
// cut off learns late that it no longer leads.
func (s *Session) Attend(fn func(ctx context.Context)) {
	var last *term
	for {
		s.mu.Lock()
		t, changed := s.term, s.changed
		s.mu.Unlock()
		if t != nil && t != last && t.ctx.Err() == nil {
			last = t
			fn(t.ctx)
			continue
		}
		select {
		case <-changed:
		case <-s.draining:
			return
		case <-s.ctx.Done():
			return
		}
	}
}
