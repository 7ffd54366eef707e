package telemetry

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/handlers/notify"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// The results of a call that was to claim tasks.
const (
	claimedSome  = "tasks"
	claimedNone  = "none"
	claimRefused = "refused" // this instance may not take work
	claimFailed  = "error"
)

// errorKinds name what scripts fail with.
var errorKinds = []struct {
	name string
	err  error
}{
	{"unreplicated", task.ErrUnreplicated}, {"suspect", store.ErrSuspect}, {"unreachable", task.ErrUnreachable},
	{"busy", task.ErrBusy}, {"full", task.ErrFull}, {"denied", task.ErrDenied}, {"wrong_type", store.ErrWrongType},
	{"fenced", queue.ErrFenced}, {"not_leader", queue.ErrNotLeader}, {"stale", queue.ErrStale},
}

const otherError = "other"

// Workers implements [onbeat.Observer], as do the other methods.
func (m *Metrics) Workers(n int) { m.workers.Set(float64(n)) }

// Claimed counts a call that was to claim tasks.
func (m *Metrics) Claimed(n int, may bool, err error) {
	result := claimedNone
	switch {
	case err != nil:
		result = claimFailed
	case n > 0:
		result = claimedSome
	case !may:
		result = claimRefused
	}
	m.claims.WithLabelValues(result).Inc()
}

// Began observes how late a run begins. Only the first run of a slot says how late the slot is, and no backfill does.
func (m *Metrics) Began(t *task.Task) {
	m.busy.Inc()
	if !t.Due.IsZero() {
		m.wait.Observe(max(t.Claimed.Sub(t.Due), 0).Seconds())
	}
	if t.Attempt <= 1 && t.ID == task.SlotID(t.Schedule, t.Slot) {
		m.lag.Observe(max(t.Claimed.Sub(t.Slot), 0).Seconds())
	}
}

// Ended counts a run and observes how long it took.
func (m *Metrics) Ended(t *task.Task, outcome task.Outcome, took time.Duration) {
	m.busy.Dec()
	typ := m.types.label(t.Type)
	m.runs.WithLabelValues(typ, string(outcome)).Inc()
	m.duration.WithLabelValues(typ).Observe(took.Seconds())
}

// Called observes a call of a script.
func (m *Metrics) Called(script string, took time.Duration, err error) {
	m.scripts.WithLabelValues(script).Observe(took.Seconds())
	if err == nil || errors.Is(err, context.Canceled) {
		return
	}
	for _, kind := range errorKinds {
		if errors.Is(err, kind.err) {
			m.failures.WithLabelValues(kind.name).Inc()
			return
		}
	}
	m.failures.WithLabelValues(otherError).Inc()
}

// PrimarySuspected counts a time in which claims were held back.
func (m *Metrics) PrimarySuspected() { m.doubts.Inc() }

// ArchiveLost counts entries that were lost before they were archived.
func (m *Metrics) ArchiveLost(entries int64) { m.lost.Add(float64(entries)) }

// OutboxMoved counts rows of the outbox.
func (m *Metrics) OutboxMoved(result string, rows int) {
	m.moved.WithLabelValues(result).Add(float64(rows))
}

// OutboxWaiting notes how many rows of the outbox wait.
func (m *Metrics) OutboxWaiting(rows int) { m.outbox.Set(float64(rows)) }

// Notified counts an attempt to send a message. All results of a target are there from the first attempt on: a rate does not see
// the first count of a result that was not there before.
func (m *Metrics) Notified(target, result string) {
	label := m.targets.label(target)
	for _, r := range notify.Results() {
		m.told.WithLabelValues(label, r)
	}
	m.told.WithLabelValues(label, result).Inc()
}

// Beat counts an attempt to send a heartbeat.
func (m *Metrics) Beat(of, result string) { m.beats.WithLabelValues(of, result).Inc() }

// SecretUnreadable counts a secret of the API that could not be read again: of a "token" by its name, or "tls" for the certificates.
func (m *Metrics) SecretUnreadable(kind, name string) { m.secrets.WithLabelValues(kind, name).Inc() }
