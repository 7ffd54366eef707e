package instance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// The causes with which the context of a session or a term ends.
var (
	// ErrLeaseLost: the instance could not renew its lease in time, so another one may have taken over. Its claims are void.
	ErrLeaseLost = errors.New("the lease ran out")
	// ErrDeposed: another instance leads.
	ErrDeposed = errors.New("another instance leads")
	// ErrResigned: this instance is shutting down.
	ErrResigned = errors.New("the instance resigned")
	// errShut: another program shut the gate that this leader had opened.
	errShut = errors.New("something else shut the gate")
	// ErrLeft: the session ended in order.
	ErrLeft = errors.New("the instance left")
)

// Session is one registration of an instance: one generation, from joining to leaving.
type Session struct {
	// ID and Gen name it in Redis.
	ID  string
	Gen int64
	// Release is the version that the instance runs.
	Release string

	// Work rings when there may be a task to claim: a task fell due, leadership moved, or there is a new lane.
	Work Bell
	// Schedules rings when a schedule was changed.
	Schedules Bell

	ctx      context.Context
	cancel   context.CancelCauseFunc
	draining chan struct{}
	drained  sync.Once // draining is closed
	beat     Bell
	strayed  Bell         // keys were set aside: restore their content
	orphans  chan []int64 // generations to recover
	lease    time.Duration
	takeBack func(context.Context) error
	mend     func(ctx context.Context, cause error) bool
	posts    chan time.Duration // in how long the monitor must look; see post
	silent   Bell               // a message found no listener: the monitor must look
	tune     Bell               // this instance does not hear its own channel: listen anew
	stuck    chan stuck         // reports of a leader that cannot schedule
	observer Observer           // may be nil
	serving  atomic.Bool        // fn of Lead has not returned

	lost       chan struct{} // closed when trust in the lease has ended
	trustTimer *time.Timer
	trusted    time.Time        // until when, by the wall clock
	wall       func() time.Time // the wall clock

	reign     time.Time // until when the leader's lease lasts, or zero; the keeper's own
	probation time.Time // when to ask again to be ready, or zero; the same

	wakeAt   atomic.Int64
	again    atomic.Bool               // Redis was connected to again: the scheduler has not looked yet
	unsure   atomic.Bool               // the same: the state that Redis knows may be an earlier one
	listens  atomic.Pointer[time.Time] // since when this instance listens to its channel; nil: it does not yet
	claims   atomic.Bool               // the same: the consumer has not asked yet what Redis believes that it holds
	claimed  *claims
	loss     atomic.Pointer[Loss]
	mu       sync.Mutex
	view     View
	refused  bool   // the consumer was last told that it may not take work
	reads    string // the name of the lanes that the consumer reads, while it relies on being woken
	term     *term
	resigned bool
	holds    string // why a starting instance is not ready yet; "": its readiness check, or MinReady
	onCancel func(Cancel)
	changed  chan struct{} // closed and replaced when the term changes
	heard    chan struct{} // closed and replaced with each view
}

type term struct {
	task.Term
	began  time.Time
	opened time.Time // when this term opened the gate, by the clock of Redis; zero if it did not
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newSession(id string, gen int64, release string) *Session {
	s := &Session{
		ID: id, Gen: gen, Release: release, claimed: new(claims),
		Work: NewBell(), Schedules: NewBell(), beat: NewBell(), strayed: NewBell(), silent: NewBell(), tune: NewBell(),
		draining: make(chan struct{}), changed: make(chan struct{}), lost: make(chan struct{}),
		wall:    func() time.Time { return time.Now().Round(0) },
		orphans: make(chan []int64, 1), stuck: make(chan stuck), posts: make(chan time.Duration, 1), heard: make(chan struct{}),
	}
	s.wakeAt.Store(noWake)
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// Context returns the context of the session. While it lives, this generation holds its claims. It ends, with a cause, before
// the lease could run out in Redis. All work for a claim must use it or a child of it.
func (s *Session) Context() context.Context { return s.ctx }

// Draining returns a channel that is closed when the instance resigns: claim nothing more, and finish the runs.
func (s *Session) Draining() <-chan struct{} { return s.draining }

// View returns the last answer of the registry. It may be out of date, so no caller may decide by it; scripts check for
// themselves.
func (s *Session) View() View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// OnCancel sets the function that is called for each request to cancel a run, again with every heartbeat while the request
// stands. The session calls fn on its own goroutines, perhaps on two at once. Fn must not block: the heartbeat waits for it.
func (s *Session) OnCancel(fn func(Cancel)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCancel = fn
}

// TakeWake returns, once, the due time that wake-ups named. A zero time means "now"; false means that there was none.
func (s *Session) TakeWake() (time.Time, bool) {
	ms := s.wakeAt.Swap(noWake)
	if ms == noWake {
		return time.Time{}, false
	}
	return store.FromMs(ms), true
}

// Reconnected reports, once, that the connection to Redis was made again. That may be another server, or the same one in
// an earlier state: the last writes may be lost.
func (s *Session) Reconnected() bool { return s.again.Swap(false) }

// ClaimsInDoubt reports, once, that Redis may have lost its last writes, so that Redis may still have claims that the
// consumer has settled. Work rings for it.
func (s *Session) ClaimsInDoubt() bool { return s.claims.Swap(false) }

const noWake = int64(1<<63 - 1)

// wake notes when to look for work (0: now) and rings.
func (s *Session) wake(ms int64) {
	for {
		old := s.wakeAt.Load()
		if old <= ms || s.wakeAt.CompareAndSwap(old, ms) {
			break
		}
	}
	s.Work.Ring()
}

// Doubt makes the instance send a heartbeat at once. The reply names the leader. A caller uses it after Redis refused
// a call because this instance does not lead, or is not registered any more.
func (s *Session) Doubt() { s.beat.Ring() }

// Opened takes in that the leader has opened the gate in a term, at a moment of the clock of Redis. If a later view says that the gate is
// shut, something else shut it, or Redis has lost the write: then another term begins. The consumer of this instance looks for due tasks
// now. Messages of Redis would have it do so too, but they can be lost, and at start the instance does not listen to them yet.
func (s *Session) Opened(epoch int64, at time.Time) {
	s.mu.Lock()
	if s.term != nil && s.term.Epoch == epoch {
		s.term.opened = at
	}
	s.mu.Unlock()
	s.wake(0)
}

// TakeBack recovers the tasks of dead generations. A leader calls it before it opens the gate, so that no slot is dropped
// for overlapping a dead run. It returns within half a lease, with an error if a generation could not be recovered. Tasks
// that only another release can read are not an error.
func (s *Session) TakeBack(ctx context.Context) error {
	if s.takeBack == nil {
		return nil
	}
	return s.takeBack(ctx)
}

// Lease returns how long the other instances believe that this one lives after a heartbeat.
func (s *Session) Lease() time.Duration { return s.lease }

// Refused notes that Redis does not let this instance claim. Work rings when an answer of the registry says that it may.
func (s *Session) Refused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// Watch notes the name of the lanes that the consumer reads, while it relies on wake-ups; "" ends that. If Redis has lost the
// consumer's place among the watchers, as it may with its last writes, the next heartbeat rings Work.
func (s *Session) Watch(reads string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = reads
}

func (s *Session) watches() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// Lead calls fn for each term of this instance, one after the other, until the session ends or drains. Fn's context ends with
// the term, with a cause; then fn must return. If fn returns while the term lives, Lead calls it again, after a pause that
// grows to a heartbeat, and once Redis has said that this instance still leads.
func (s *Session) Lead(fn func(ctx context.Context, t task.Term)) {
	var last *term // not its epoch: Redis may give an epoch twice after it lost its last writes
	var b backoff
	for {
		s.mu.Lock()
		t, changed := s.term, s.changed
		s.mu.Unlock()
		switch {
		case t == nil || t.ctx.Err() != nil:
			select {
			case <-changed:
			case <-s.draining:
				return
			case <-s.ctx.Done():
				return
			}
			continue
		case t != last:
			b = backoff{}
		case !s.confirmed(t, b.next(s.lease/5)):
			continue
		}
		last = t
		began := time.Now()
		s.serving.Store(true)
		fn(t.ctx, t.Term)
		s.serving.Store(false)
		if time.Since(began) > s.lease {
			b = backoff{} // it worked for a while
		}
	}
}

// confirmed waits for d, and until Redis has said again that the term lives. It returns false when the term has ended.
func (s *Session) confirmed(t *term, d time.Duration) bool {
	s.mu.Lock()
	heard := s.heard
	s.mu.Unlock()
	s.Doubt()
	select {
	case <-heard:
	case <-t.ctx.Done():
	}
	return pause(t.ctx, d)
}

// see takes in a view: it begins or ends the term, and rings for whatever moved.
func (s *Session) see(v View) (before, after int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.view
	s.view = v
	close(s.heard)
	s.heard = make(chan struct{})
	if s.term != nil {
		before = s.term.Epoch
	}
	leads := v.Leader == s.ID && v.LeaderGen == s.Gen && !s.resigned
	switch {
	case s.term == nil:
	case !leads || s.term.Epoch != v.Epoch:
		s.endTerm(ErrDeposed)
	case !v.Open && (old.Epoch == v.Epoch && old.Open || !s.term.opened.IsZero() && v.Now.After(s.term.opened)):
		s.endTerm(errShut) // another term begins, and opens the gate
	}
	if leads && s.term == nil && s.ctx.Err() == nil {
		t := &term{Term: task.Term{Instance: s.ID, Gen: s.Gen, Epoch: v.Epoch}, began: time.Now()}
		t.ctx, t.cancel = context.WithCancelCause(s.ctx)
		s.term = t
		if s.observer != nil {
			s.observer.Leads(v.Epoch)
		}
		close(s.changed)
		s.changed = make(chan struct{})
	}
	if s.term != nil {
		after = s.term.Epoch
	}
	// No message says that this instance may claim now, for example because it became ready. And the consumer may have
	// been refused in between.
	allowed := v.May && (s.refused || !old.May)
	if allowed {
		s.refused = false
	}
	if allowed || old.Epoch != v.Epoch || old.Open != v.Open || old.Lanes != v.Lanes {
		s.wake(0)
	}
	if old.Schedules != v.Schedules {
		s.Schedules.Ring()
	}
	return before, after
}

// endTerm needs mu.
func (s *Session) endTerm(cause error) {
	if s.term != nil {
		s.term.cancel(cause)
		s.term = nil
		if s.observer != nil {
			s.observer.Leads(0)
		}
	}
}

// resign ends the term, and there is no other in this session, whatever Redis hears of it.
func (s *Session) resign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resigned = true
	s.endTerm(ErrResigned)
}

// drain closes Draining: the consumer claims nothing more. It may be called again.
func (s *Session) drain() { s.drained.Do(func() { close(s.draining) }) }

// end ends the session, and cancels all work that uses its context.
func (s *Session) end(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endTerm(cause)
	s.cancel(cause)
	s.trustTimer.Stop()
}

func (s *Session) cancelRuns(list []Cancel) {
	s.mu.Lock()
	fn := s.onCancel
	s.mu.Unlock()
	if fn == nil {
		return
	}
	for _, c := range list {
		fn(c)
	}
}
