package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// mendEvery is the shortest time between two looks for keys of another type.
const mendEvery = time.Second

// mend sets aside keys that another program has overwritten with another type, and reports whether there were any.
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
		m.log.Error().Err(err).Msg("keys of onbeat have the wrong type, and this instance cannot set them aside")
		return false
	}
	if len(keys) > 0 {
		m.log.Error().Strs("keys", keys).Msg("set aside keys of the wrong type: something else wrote to them, and their content is lost")
	}
	return len(keys) > 0
}

// findLost restores the content of keys that were set aside, as far as other keys know it.
func (m *Manager) findLost(ctx context.Context, s *Session) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.strayed:
		}
		n, err := m.q.FindLost(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			m.log.Debug().Err(err).Msg("could not find all tasks of the keys that were set aside: the leader tries again in half a minute")
		case n > 0:
			m.log.Warn().Int("tasks", n).Msg("found tasks again whose key was set aside")
		}
	}
}

// FindLost makes the instance restore the content of keys that were set aside, as far as other keys know it. It does not
// wait. The leader calls it now and then, because the instance that set the keys aside may have ended before it did so.
func (s *Session) FindLost() { s.strayed.Ring() }

// Mend sets aside keys that another program has overwritten with another type, so that work goes on without them. The
// caller is a part of this instance to which Redis answered that a key has the wrong type, and passes that error as cause. Then all parts of this
// instance read again. Mend reports whether there was such a key. It looks once a second at most, and reports false
// otherwise.
func (s *Session) Mend(cause error) bool {
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

// mayAll waits until Redis answers. It returns [task.ErrDenied], with the rules to add, if the user lacks a right that an
// instance needs.
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
		case err == nil || !errors.Is(err, task.ErrUnreachable):
			if b.tries > 0 {
				m.log.Info().Msg("redis answers again")
			}
			return nil // any other error shows when the instance registers
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
	return fmt.Errorf("%w: the user lacks %s; docs/rights.md has the rules for an instance", task.ErrDenied, strings.Join(missing, " "))
}

// named returns an error that ends the instance. If its user lost rights, the error names them: for a command in a script
// Redis says only that the command may not run.
func (m *Manager) named(ctx context.Context, err error) error {
	if !store.LacksRight(err) {
		return err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), m.cfg.heartbeat())
	defer done()
	missing, unknown := store.Within(ctx, func() ([]string, error) { return m.q.Missing(ctx, queue.AsInstance, m.cfg.Durable) })
	if unknown != nil || len(missing) == 0 { // the right may have been given back meanwhile
		return err
	}
	return lacks(missing)
}
