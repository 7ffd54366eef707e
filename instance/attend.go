package instance

import "context"

// Attend calls fn in each term of this instance, beside [Session.Lead], until the session ends or drains: for work that only
// one instance is to do, and that must not keep it from leading. Fn's context ends with the term; then fn must return. If fn
// returns earlier, Attend calls it again in the next term. Two instances may be at it for a moment, as one that is cut off
// hears late that it no longer leads.
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
