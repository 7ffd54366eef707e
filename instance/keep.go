package instance

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
)

// keep renews the lease until serve has returned. If the lease is lost, it ends the session's context and waits for serve.
func (m *Manager) keep(ctx context.Context, s *Session, served <-chan error) (lost bool, err error) {
	ready, done := m.readiness(ctx, s), ctx.Done()
	next := time.NewTimer(m.spread())
	defer next.Stop()
	rest := time.NewTimer(0) // fires when this instance, having stood down, may lead again
	rest.Stop()
	defer rest.Stop()
	resting := false
	var owed func(*Session) error  // a change of state that Redis has not heard of yet
	var state func(*Session) error // the last one
	var b backoff
	for {
		var err error
		select {
		case err := <-served:
			if errors.Is(context.Cause(s.ctx), ErrLeaseLost) {
				return true, unlessVoid(err)
			}
			return false, err
		case <-done:
			done, ready = nil, nil
			state, resting = m.resign, false
			owed, err = m.settle(s, state)
			s.drain()
		case <-ready:
			ready = nil
			state = m.ready
			owed = state
		case x := <-s.stuck:
			var d time.Duration
			if d, err = m.standDown(s, x); d > 0 {
				state, owed, resting, s.probation = nil, nil, true, time.Time{}
				rest.Reset(d)
			}
		case <-rest.C:
			if resting && m.rested(s) {
				resting, state = false, m.ready
				owed = state
			} else if resting {
				rest.Reset(m.cfg.Lease)
			}
		case <-next.C:
			err = m.heartbeat(ctx, s)
		case <-s.beat:
			if s.unsure.Swap(false) { // Redis may have lost the state: to send it again is harmless
				owed = state
			}
			err = m.heartbeat(ctx, s)
		case <-s.expired():
			err = ErrLeaseLost
		}
		if err == nil && resting && s.View().Leader == "" && !s.serving.Load() {
			rest.Reset(0) // no instance leads: a leader that may fail again is better
		}
		if err == nil && owed != nil {
			owed, err = m.settle(s, owed)
		}
		if err != nil && s.overdue() { // Redis does not answer, and the machine may have been suspended
			err = ErrLeaseLost
		}
		switch {
		case err == nil:
			if b.tries > 0 {
				m.log.Info().Msg("redis answers again")
			}
			b = backoff{}
			next.Reset(m.untilBeat(s))
		case errors.Is(err, queue.ErrFenced), errors.Is(err, ErrLeaseLost):
			m.log.Warn().AnErr("cause", err).Msg("lease lost: this instance's claims are void")
			s.end(ErrLeaseLost)
			return true, unlessVoid(<-served)
		default:
			if b.tries == 0 {
				m.log.Warn().Err(err).Msg("heartbeat failed")
			}
			if errors.Is(err, store.ErrWrongType) {
				s.Mend(err)
			}
			next.Reset(b.next(m.cfg.heartbeat() / 4)) // the lease is at stake
		}
	}
}

// settle tries a change of state. If Redis cannot be reached, it returns the change, and keep tries it again with the next
// heartbeat.
func (m *Manager) settle(s *Session, change func(*Session) error) (owed func(*Session) error, err error) {
	switch err := change(s); {
	case errors.Is(err, errProbation):
		return change, nil
	case err != nil:
		return change, err
	}
	return nil, nil
}

// errProbation: the instance is on probation, and is not ready before it is over.
var errProbation = errors.New("on probation")

// unlessVoid returns the error of a serve whose lease was lost, or nil if that loss is the error.
func unlessVoid(err error) error {
	if errors.Is(err, ErrLeaseLost) || errors.Is(err, context.Canceled) || errors.Is(err, queue.ErrFenced) {
		return nil
	}
	return err
}

// heartbeat renews the lease and takes in the reply. Run is the context that a request to drain ends.
func (m *Manager) heartbeat(run context.Context, s *Session) error {
	ctx, done := context.WithTimeout(s.ctx, m.cfg.heartbeat())
	defer done()
	asked := time.Now() // before the call, so that a slow reply does not lengthen the lease
	b, err := m.reg.Heartbeat(ctx, s.ID, s.Gen, m.cfg.Lease, m.seen, s.watches())
	if err != nil {
		return err
	}
	s.trust(asked.Add(m.cfg.Lease - m.cfg.margin()))
	m.heard(s, b.View)
	m.see(s, b.View)
	m.obey(run, b.View)
	s.reign = time.Time{}
	if b.Left >= 0 {
		s.reign = time.Now().Add(b.Left)
	}
	s.cancelRuns(b.Cancel)
	if b.Order > m.order { // a person has promoted the release: this outlives a Redis that comes back empty
		m.order = b.Order
		m.cfg.Order.note(b.Order)
	}
	m.keepsUp(ctx, b.Order)
	m.tuned(s, b)
	s.post(lookIn(b))
	if b.Overslept {
		s.wake(0)
	}
	if len(b.Orphans) > 0 {
		select {
		case s.orphans <- b.Orphans:
		default: // takeBack is busy with the last ones; the leader's next heartbeat names them again
		}
	}
	return nil
}

// keepsUp carries the order of the release over to a partition that has a smaller one: it met the releases in another order, or a failover
// took a promotion back.
func (m *Manager) keepsUp(ctx context.Context, has int64) {
	known := m.cfg.Order.known()
	if known <= has || m.cfg.Release == "" {
		return
	}
	switch order, err := m.reg.Raise(ctx, m.cfg.Release, known); {
	case err != nil:
		m.log.Debug().Err(err).Msg("cannot carry over the order of the release")
	case order > 0:
		m.order = order
		m.cfg.Order.note(order)
	}
}

func (m *Manager) ready(s *Session) error {
	v, err := m.call(s, func(ctx context.Context, id string, gen int64) (View, error) {
		return m.reg.Ready(ctx, id, gen, m.cfg.Lease)
	})
	switch {
	case err != nil:
		return err
	case v.Probation > 0:
		if s.probation.IsZero() {
			m.log.Warn().Dur("for_ms", v.Probation).Msg("on probation: an instance of this release was lost soon after it became ready, and another release can lead")
		}
		s.probation = time.Now().Add(v.Probation)
		s.hold("it is on probation until " + s.probation.UTC().Format(time.TimeOnly) + " UTC")
		m.see(s, v)
		return errProbation
	}
	s.probation, m.proven = time.Time{}, true
	m.joined.Store(true)
	m.log.Info().Msg("ready")
	m.see(s, v)
	return nil
}

// resign makes the instance drain. If it leads, leadership moves in this call, before anything else.
func (m *Manager) resign(s *Session) error {
	s.resign()
	s.probation = time.Time{}
	v, err := m.call(s, m.reg.Resign)
	if err != nil {
		return err
	}
	m.log.Info().Msg("resigned")
	m.see(s, v)
	return nil
}

// call makes one call of the registry that does not renew the lease.
func (m *Manager) call(s *Session, fn func(context.Context, string, int64) (View, error)) (View, error) {
	ctx, done := context.WithTimeout(s.ctx, m.cfg.heartbeat())
	defer done()
	return fn(ctx, s.ID, s.Gen)
}

func (m *Manager) see(s *Session, v View) {
	before, after := s.see(v)
	switch {
	case after != 0 && after != before:
		m.log.Info().Int64("epoch", after).Msg("leads")
	case after == 0 && before != 0:
		m.log.Info().Str("leader", v.Leader).Msg("no longer leads")
	}
}
