package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// An instance that stood down becomes ready again after this many leases, because its trouble may have passed. If it soon
// stands down again, it rests twice as long each time, up to an hour. It becomes ready at once if no instance leads.
const (
	standDownLeases = 12
	longestRest     = time.Hour
)

// StandDown makes a leader that cannot schedule hand over, if hand is set and another instance could lead. That one leads
// when StandDown returns true. If it returns false and say is set, an event says why the caller leads on. It returns
// an error if the term is over. [Registry.Ready] undoes it.
func (r *Registry) StandDown(ctx context.Context, t task.Term, why string, hand, say bool) (bool, View, error) {
	values, err := r.run(ctx, standDownScript, r.first(), t.Instance, t.Gen, t.Epoch, why, flag(hand), flag(say))
	if err != nil {
		return false, View{}, fmt.Errorf("stand down: %w", err)
	}
	return values.Int(0) == 1, viewOf(values[min(1, len(values)):]), nil
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

// stuck is a leader's report that it cannot schedule.
type stuck struct {
	term      task.Term
	why       string
	hand, say bool
	stood     chan bool // gets one value: whether it stood down
}

// StandDown hands leadership over. A leader that cannot schedule calls it. If hand is set and another instance could lead,
// that one leads from now on, and this one rests: a minute with a lease of 5s, longer if it soon happens again. StandDown
// reports whether it handed over. If not, and say is set, an event says why.
func (s *Session) StandDown(ctx context.Context, t task.Term, why string, hand, say bool) bool {
	x := stuck{term: t, why: why, hand: hand, say: say, stood: make(chan bool, 1)}
	select {
	case s.stuck <- x:
	case <-ctx.Done():
		return false
	}
	select {
	case stood := <-x.stood:
		return stood
	case <-ctx.Done():
		return false
	}
}

// Term returns the term that this instance leads, as far as it knows, and when the term began here.
func (s *Session) Term() (t task.Term, began time.Time, leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil || s.term.ctx.Err() != nil {
		return task.Term{}, time.Time{}, false
	}
	return s.term.Term, s.term.began, true
}

// standDown makes the leader hand over, if another instance could lead. It returns how long this instance must rest, or
// zero if it leads on.
func (m *Manager) standDown(s *Session, x stuck) (time.Duration, error) {
	ctx, done := context.WithTimeout(s.ctx, m.cfg.heartbeat())
	defer done()
	stood, v, err := m.reg.StandDown(ctx, x.term, x.why, x.hand, x.say)
	x.stood <- stood
	if errors.Is(err, queue.ErrNotLeader) { // the next heartbeat brings the same news
		s.beat.Ring()
		return 0, nil
	}
	if err != nil && !errors.Is(err, queue.ErrFenced) && !store.Retryable(err) { // the lease does not hang on it
		m.log.Error().Err(err).Msg("cannot schedule, and could not stand down")
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	m.see(s, v)
	if !stood {
		return 0, nil
	}
	rest := standDownLeases * m.cfg.Lease
	if since := time.Since(m.stoodDown); !m.stoodDown.IsZero() && since < 4*m.rest {
		rest = 2 * m.rest
	}
	s.hold("it stood down: " + x.why)
	m.stoodDown, m.rest = time.Now(), min(rest, max(longestRest, m.cfg.Lease))
	m.log.Error().Str("reason", x.why).Dur("rest", m.rest).Msg("stood down: another instance leads")
	return m.rest, nil
}

// rested reports whether an instance that stood down may lead again.
func (m *Manager) rested(s *Session) bool {
	if s.serving.Load() {
		m.log.Error().Msg("this instance cannot lead again: the scheduler of its last term has not returned")
		return false
	}
	return true
}
