package producer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/task"
)

// progress says how the leader's work gets on. The goroutine that works writes it, and another goroutine reads it, because
// the first may be blocked.
type progress struct {
	mu    sync.Mutex
	owed  time.Time   // since when work has waited without a step, or when the next work will come
	err   error       // the last error since then
	alarm *time.Timer // ends the attempt under way
}

// stalled is how long an attempt may go on without a step.
const stalled = time.Minute

// begin records that there is work now.
func (p *progress) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.owed.IsZero() || p.owed.After(now) {
		p.owed = now
	}
}

// made records that a step was made.
func (p *progress) made() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owed, p.err = time.Now(), nil
	if p.alarm != nil {
		p.alarm.Reset(stalled)
	}
}

// rest records that there is nothing to do for a while.
func (p *progress) rest(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.owed, p.err = time.Now().Add(d), nil
}

func (p *progress) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *progress) state() (owed time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owed, p.err
}

// attempt returns the context of one attempt. Each call in it may take as long as call says, and the attempt as a whole
// goes on as long as steps are made.
func (p *progress) attempt(ctx context.Context, call time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	alarm := time.AfterFunc(stalled, cancel)
	p.alarm = alarm
	return eachCall{ctx, call}, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		alarm.Stop()
		p.alarm = nil
		cancel()
	}
}

// eachCall is a context whose deadline is always the same time ahead: the client asks for it with each call.
type eachCall struct {
	context.Context
	most time.Duration
}

// Deadline returns the deadline of a call that begins now.
func (c eachCall) Deadline() (time.Time, bool) { return time.Now().Add(c.most), true }

// callLimit bounds one call. Slots are pushed two leases ahead, so a call that is given up is tried again in time.
func callLimit(session *instance.Session) time.Duration {
	return max(session.Lease()/2, 500*time.Millisecond)
}

// stuckAfter is how long a leader may owe work without making a step. Then it hands over, a lease before the first slot is
// late.
func stuckAfter(session *instance.Session) time.Duration { return max(session.Lease(), 2*time.Second) }

// sayEvery is how often the leader repeats in its log that it cannot schedule.
const sayEvery = time.Minute

// watch checks, until ctx ends, that a leader schedules. If the leader makes no step for a lease, watch logs that, and
// hands over if another instance could lead. Else the leader goes on trying.
func (s *Scheduler) watch(ctx context.Context, session *instance.Session) {
	most := stuckAfter(session)
	tick := time.NewTicker(most / 4)
	defer tick.Stop()
	var asked, said time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		term, began, leads := session.Term()
		owed, err := s.progress.state()
		since := maxTime(began, owed)
		if !leads || time.Since(since) < most {
			asked, said = time.Time{}, time.Time{}
			continue
		}
		if time.Since(asked) < most {
			continue
		}
		asked = time.Now()
		say := time.Since(said) >= sayEvery
		if say {
			said = asked
		}
		s.standDown(ctx, session, term, time.Since(since), err, say)
	}
}

// standDown logs that the leader cannot schedule, and hands over if that helps. It does not help if Redis is full or lacks
// replicas: then no instance could schedule.
func (s *Scheduler) standDown(ctx context.Context, session *instance.Session, term task.Term, since time.Duration, err error, say bool) {
	why := "no call to redis returns"
	if err != nil {
		why = err.Error()
	}
	if say {
		s.log.Error().Str("reason", why).Dur("for", since).Msg("this instance leads, but cannot schedule: slots will be late")
	}
	hand := !errors.Is(err, task.ErrFull) && !errors.Is(err, task.ErrUnreplicated)
	if !hand && !say {
		return
	}
	call, done := context.WithTimeout(ctx, stuckAfter(session))
	defer done()
	session.StandDown(call, term, why, hand, say)
}
