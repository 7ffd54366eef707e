package instance

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// lostText is the error that a task gets when the instance that ran it was declared dead.
const lostText = "the instance that ran it was lost"

// cancelledText is the error of such a task if a caller had asked to cancel it too.
const cancelledText = lostText + ", and a caller had asked to cancel it"

// stuckPause is how long this instance waits before it looks again at tasks that it cannot read.
const stuckPause = time.Minute

// takeBack recovers generations as heartbeats name them, until ctx ends. It runs on a goroutine of its own, because
// heartbeats must not wait for it.
func (m *Manager) takeBack(ctx context.Context, orphans <-chan []int64) {
	for {
		select {
		case <-ctx.Done():
			return
		case gens := <-orphans:
			_ = m.recoverAll(ctx, gens) // it logs errors, and the leader's next heartbeat names the generations again
		}
	}
}

// takeBackNow recovers every generation that was declared dead, before the leader opens the gate. It tries for at most
// half a lease: the gate must not stay shut because of a generation that cannot be recovered.
func (m *Manager) takeBackNow(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, m.cfg.Lease/2)
	defer done()
	var b backoff
	for {
		gens, err := m.reg.Orphans(ctx)
		if err == nil {
			err = m.recoverAll(ctx, gens)
		}
		if err == nil || !pause(ctx, b.next(m.cfg.heartbeat())) {
			return err
		}
	}
}

// recoverAll recovers generations, and goes on with the next one after a failure. It returns the errors, joined, or nil.
// It serves one caller at a time, so that the next caller finds nothing left to do.
func (m *Manager) recoverAll(ctx context.Context, gens []int64) (failed error) {
	select {
	case m.recovering <- struct{}{}:
		defer func() { <-m.recovering }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	maps.DeleteFunc(m.later, func(_ int64, at time.Time) bool { return time.Now().After(at) })
	for _, gen := range gens {
		if _, wait := m.later[gen]; wait {
			continue
		}
		stuck, err := m.recoverWithin(ctx, gen)
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			m.log.Debug().Err(err).Int64("generation", gen).Msg("could not take back the tasks of a lost instance")
			failed = err
		case stuck:
			m.later[gen] = time.Now().Add(stuckPause)
		}
	}
	return failed
}

// recoverTimeout bounds the recovery of one generation. Tasks that were moved by then stay moved, and the next heartbeat
// names the generation again.
const recoverTimeout = time.Minute

func (m *Manager) recoverWithin(ctx context.Context, gen int64) (stuck bool, err error) {
	ctx, done := context.WithTimeout(ctx, recoverTimeout)
	defer done()
	return store.Within(ctx, func() (bool, error) { return m.recover(ctx, gen) })
}

// recover takes back the tasks of a dead generation: each is due again with the attempt counted, or dead if that was its
// last. Several instances may do so at once; each task moves once. It reports whether this release cannot read some tasks.
func (m *Manager) recover(ctx context.Context, gen int64) (stuck bool, err error) {
	claims, _, err := m.q.Claims(ctx, gen, "")
	if err != nil {
		return false, err
	}
	list := make([]queue.Recovery, 0, len(claims))
	died := 0
	for _, c := range claims {
		if c.Err != nil && !ofNewer(c.Record) {
			m.log.Error().Err(c.Err).Str("task", c.Task.ID).Msg("unreadable task record")
			list = append(list, m.damaged(c))
			died++
			continue
		}
		if c.Err != nil {
			stuck = true
			m.log.Warn().Err(c.Err).Str("task", c.Task.ID).Msg("cannot take back a task: leaving it to a release that can read it")
			continue
		}
		r := m.recovery(c)
		if r.Dead {
			died++
		}
		list = append(list, r)
	}
	moved, left, err := m.q.Recover(ctx, gen, list)
	if errors.Is(err, queue.ErrAlive) { // another instance was faster
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if moved > 0 || left > 0 {
		m.log.Info().Int64("generation", gen).Int("tasks", moved).Int("dead", died).Int("left", left).
			Msg("took back the tasks of a lost instance")
	}
	return stuck, nil
}

// ofNewer reports whether a record has the format of a newer release, rather than no format.
func ofNewer(record string) bool { return record != "" && record[0] > '2' && record[0] <= '9' }

// damaged returns the recovery of a task whose record no release can read: the task is dead, and people see it as such. Only
// the ID of its run is known.
func (m *Manager) damaged(c queue.Claim) queue.Recovery {
	return queue.Recovery{Claim: c, Dead: true, Record: []byte(c.Record), Note: m.q.Notes().Unread(c.Task)}
}

// recovery returns the recovery of one task. If a caller asked to cancel it when its instance was gone, the task does not run
// again.
func (m *Manager) recovery(c queue.Claim) queue.Recovery {
	r := m.lost(c, lostText, history.Lost)
	if !r.Dead {
		cancelled := m.lost(c, cancelledText, history.Cancelled)
		cancelled.Dead, r.Asked = true, &cancelled
	}
	return r
}

func (m *Manager) lost(c queue.Claim, text string, word history.Word) queue.Recovery {
	t := queue.Fail(c.Task, task.Failure{At: c.Task.Claimed, Attempt: c.Task.Attempt, Error: text}, false)
	r := queue.Recovery{Claim: c, Lane: queue.LaneOf(&t.Task), Dead: t.Dead, Record: t.Record}
	if r.Dead {
		word = history.Dead // as for a run that failed for good: the task does not run again unless a person retries it
	}
	r.Note = m.q.Notes().Run(&t.Task, word, 0, text, "")
	return r
}
