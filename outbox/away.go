package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

// awayFor is how long a mover passes over the rows of a partition that is away: the rows of the others have their turn.
const awayFor = 5 * time.Second

// clockTime is how long a partition may take to tell its time, if there are others: the rows of these must not wait for one that hangs.
const clockTime = time.Second

// clocks asks each partition for its time: zero for one that does not answer. The error is that of the first, if none does.
func (m *Mover) clocks(ctx context.Context) ([]time.Time, error) {
	if len(m.parts) > 1 {
		short, done := context.WithTimeout(ctx, clockTime)
		defer done()
		ctx = short
	}
	began, errs := make([]time.Time, len(m.parts)), make([]error, len(m.parts))
	var all sync.WaitGroup
	for i := range m.parts {
		all.Go(func() {
			began[i], errs[i] = store.Within(ctx, func() (time.Time, error) { return m.parts[i].q.Now(ctx) })
		})
	}
	all.Wait()
	if !slices.ContainsFunc(errs, func(err error) bool { return err == nil }) {
		return nil, errs[0]
	}
	return began, nil
}

var errAway = errors.New("redis does not answer")

// reachable returns the rows of the partitions that answer. It sets the others aside, and says how many they are.
func (m *Mover) reachable(rows []row, began []time.Time) (here []row, aside int) {
	var away []row
	for _, r := range rows {
		if began[r.part].IsZero() {
			away = append(away, r)
			continue
		}
		here = append(here, r)
	}
	for part, at := range began {
		if m.away[part] && !at.IsZero() {
			delete(m.away, part)
			m.log.Info().Int("partition", part+1).Msg("moves tasks of the outbox again")
		}
	}
	m.setAside(away, errAway)
	return here, len(away)
}

// setAside passes over rows of partitions that are away, for a moment.
func (m *Mover) setAside(rows []row, why error) {
	until := time.Now().Add(awayFor)
	for _, r := range rows {
		m.stuck[r.id] = until
		if !m.away[r.part] {
			m.away[r.part] = true
			m.log.Warn().Err(why).Int("partition", r.part+1).Msg("cannot move tasks of the outbox to a partition: trying again, and moving those of the others")
		}
	}
}
