package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
)

// mendEvery is how often at most keys of another type are looked for.
const mendEvery = time.Second

// mend sets aside what something else than onbeat has made of its keys, and reports whether there was any.
func (m *Manager) mend(ctx context.Context, cause error) bool {
	m.mending.Lock()
	defer m.mending.Unlock()
	if time.Since(m.mended) < mendEvery {
		return false
	}
	m.mended = time.Now()
	ctx, done := context.WithTimeout(ctx, m.cfg.heartbeat())
	defer done()
	keys, err := m.q.Mend(ctx, cause)
	if err != nil {
		m.log.Error().Err(err).Msg("keys of onbeat's are of another type, and cannot be set aside")
		return false
	}
	if len(keys) > 0 {
		m.log.Error().Strs("keys", keys).Msg("set aside keys of another type: something else writes to them, and what they held is lost")
	}
	return len(keys) > 0
}

// findLost finds again what lay in keys that were set aside, as far as other keys know it.
func (m *Manager) findLost(ctx context.Context, s *Stay) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.strayed:
		}
		n, err := m.q.FindLost(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			m.log.Warn().Err(err).Msg("not all that was set aside could be found again: the leader tries again in half a minute")
		case n > 0:
			m.log.Warn().Int("tasks", n).Msg("tasks whose key was set aside are found again")
		}
	}
}

// FindLost has what other keys know of keys that were set aside brought back. The leader calls it now and then, should
// whoever set them aside have ended before that was done. It does not wait.
func (s *Stay) FindLost() { s.strayed.Ring() }

// Mend is for whoever was answered [store.ErrWrongType]: it sets aside the keys that something else than onbeat has made
// anew, so that work goes on without what they held. What is left is then read again by everybody here. It reports
// whether there was such a key; it looks once a second at most.
func (s *Stay) Mend(cause error) bool {
	if s.mend == nil || !s.mend(s.ctx, cause) {
		return false
	}
	s.strayed.Ring()
	s.claims.Store(true)
	s.again.Store(true)
	s.wake(0)
	s.Schedules.Ring()
	return true
}

// mayAll waits for Redis, and returns [store.ErrDenied], with the rules that would help, if the user may not do all that
// an instance does.
func (m *Manager) mayAll(ctx context.Context) error {
	var b backoff
	for {
		call, done := context.WithTimeout(ctx, m.cfg.Lease)
		missing, err := m.q.Missing(call, queue.AsInstance, m.cfg.Durable)
		done()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && len(missing) > 0:
			return lacks(missing)
		case err == nil || !errors.Is(err, store.ErrUnreachable):
			if b.tries > 0 {
				m.log.Info().Msg("redis answers again")
			}
			return nil // what else there is shows when it registers
		}
		if b.tries == 0 {
			m.log.Warn().Err(err).Msg("waiting for redis")
		}
		if !pause(ctx, b.next(m.cfg.heartbeat())) {
			return nil
		}
	}
}

func lacks(missing []string) error {
	return fmt.Errorf("%w: the user lacks %s; docs/rights.md has the rules for an instance", store.ErrDenied, strings.Join(missing, " "))
}

// named is an error that ends the instance, with the rights by name if some were taken away from its user: Redis says of a
// command in a script only that it may not be run.
func (m *Manager) named(ctx context.Context, err error) error {
	if !store.LacksRight(err) {
		return err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.heartbeat())
	defer done()
	missing, unknown := store.Within(ctx, func() ([]string, error) { return m.q.Missing(ctx, queue.AsInstance, m.cfg.Durable) })
	if unknown != nil || len(missing) == 0 { // it was given back meanwhile, say
		return err
	}
	return lacks(missing)
}
