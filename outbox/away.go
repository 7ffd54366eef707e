package outbox

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

// awayFor is how long a mover does not ask a partition that is away: the rows of the others have their turn.
const awayFor = 5 * time.Second

// clockTime is how long a partition may take to tell its time, if there are others: the rows of these must not wait for one that hangs.
const clockTime = time.Second

// absence is what a mover knows of a partition that is away.
type absence struct {
	rows stuck     // passed over until it answers, for a minute at a time
	last time.Time // when it last failed
	why  error
}

// clocks asks each partition for its time: zero for one that is away. The error is that of the first, if all are.
func (m *Mover) clocks(ctx context.Context) ([]time.Time, error) {
	if len(m.parts) > 1 {
		short, done := context.WithTimeout(ctx, clockTime)
		defer done()
		ctx = short
	}
	began, errs := make([]time.Time, len(m.parts)), make([]error, len(m.parts))
	var asked []int
	var all sync.WaitGroup
	rests := func(i int) bool { return m.away[i] != nil && time.Since(m.away[i].last) < awayFor }
	none := true // if all of them rest, all are asked: else nobody would find that they are back
	for i := range m.parts {
		none = none && rests(i)
	}
	for i := range m.parts {
		if !none && rests(i) {
			errs[i] = m.away[i].why
			continue
		}
		asked = append(asked, i)
		all.Go(func() {
			began[i], errs[i] = store.Within(ctx, func() (time.Time, error) { return m.parts[i].q.Now(ctx) })
		})
	}
	all.Wait()
	if !slices.ContainsFunc(errs, func(err error) bool { return err == nil }) {
		return nil, errs[0]
	}
	for _, i := range asked {
		if errs[i] != nil {
			m.leaves(i, errs[i])
		} else if m.away[i] != nil {
			delete(m.away, i)
			m.log.Info().Int("partition", i+1).Msg("moves tasks of the outbox again")
		}
	}
	return began, nil
}

// leaves notes that a partition is away.
func (m *Mover) leaves(part int, why error) *absence {
	a := m.away[part]
	if a == nil {
		a = &absence{rows: stuck{}}
		m.away[part] = a
		m.log.Warn().Err(why).Int("partition", part+1).Msg("cannot move tasks of the outbox to a partition: trying again, and moving those of the others")
	}
	a.last, a.why = time.Now(), why
	return a
}

// reachable returns the rows of the partitions that answer. It passes over the others, and says how many they are.
func (m *Mover) reachable(rows []row, began []time.Time) (here []row, aside int) {
	for _, r := range rows {
		if began[r.part].IsZero() {
			m.away[r.part].rows.pass(r.id, time.Now())
			continue
		}
		here = append(here, r)
	}
	return here, len(rows) - len(here)
}

// passed returns the rows to pass over.
func (m *Mover) passed() []int64 {
	now := time.Now()
	ids := m.stuck.passed(now)
	for _, a := range m.away {
		ids = append(ids, a.rows.passed(now)...)
	}
	return ids
}
