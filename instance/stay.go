package instance

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
)

// Why a stay or a term ended: the causes of their contexts.
var (
	// ErrLeaseLost: the lease could not be renewed in time, so others may have taken over. What was claimed is void.
	ErrLeaseLost = errors.New("the lease ran out")
	// ErrDeposed: another instance leads.
	ErrDeposed = errors.New("another instance leads")
	// ErrResigned: this instance is shutting down.
	ErrResigned = errors.New("the instance resigned")
	// errShut: somebody else than onbeat shut the gate that this leader had opened.
	errShut = errors.New("the gate was shut by something else")
	// ErrLeft: the stay ended in order.
	ErrLeft = errors.New("the instance left")
)

// Stay is one registration of an instance: one generation, from joining to leaving.
type Stay struct {
	// ID and Gen name it in Redis.
	ID  string
	Gen int64
	// Release is what it runs.
	Release string

	// Work rings when there may be work to take: a task fell due, leadership moved, a lane is new.
	Work Bell
	// Schedules rings when a schedule was changed.
	Schedules Bell

	ctx      context.Context
	cancel   context.CancelCauseFunc
	draining chan struct{}
	beat     Bell
	strayed  Bell         // keys were set aside: what they held is to be found again
	orphans  chan []int64 // generations whose tasks are to be taken back
	lease    time.Duration
	takeBack func(context.Context) error
	mend     func(ctx context.Context, cause error) bool
	stuck    chan stuck  // what a leader that cannot schedule says
	serving  atomic.Bool // fn of Lead has not returned

	lost       chan struct{} // closed when trust in the lease has ended
	trustTimer *time.Timer
	trusted    time.Time        // until when, by the wall clock
	wall       func() time.Time // the wall clock

	reign     time.Time // until when the leader's lease lasts, or zero; the keeper's own
	probation time.Time // when to ask again to be ready, or zero; the same

	wakeAt   atomic.Int64
	again    atomic.Bool // Redis was connected to again: the scheduler has not looked yet
	unsure   atomic.Bool // the same: the state that Redis knows may be an earlier one
	claims   atomic.Bool // the same: the consumer has not asked yet what Redis believes that it holds
	loss     atomic.Pointer[Loss]
	mu       sync.Mutex
	view     View
	refused  bool   // the consumer was last told that it may not take work
	reads    string // what the consumer reads, while it relies on being woken
	term     *term
	resigned bool
	onCancel func(Cancel)
	changed  chan struct{} // closed and replaced when the term changes
	heard    chan struct{} // closed and replaced with each view
}

type term struct {
	queue.Term
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
}

func newStay(id string, gen int64, release string) *Stay {
	s := &Stay{
		ID: id, Gen: gen, Release: release,
		Work: NewBell(), Schedules: NewBell(), beat: NewBell(), strayed: NewBell(),
		draining: make(chan struct{}), changed: make(chan struct{}), lost: make(chan struct{}),
		wall:    func() time.Time { return time.Now().Round(0) },
		orphans: make(chan []int64, 1), stuck: make(chan stuck), heard: make(chan struct{}),
	}
	s.wakeAt.Store(noWake)
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// Context lives while what this generation claims is its own. It ends, with a cause, before the lease could run out in
// Redis: everything that acts for a claim must hang on it.
func (s *Stay) Context() context.Context { return s.ctx }

// Draining is closed when the instance has resigned: claim nothing more, finish what runs.
func (s *Stay) Draining() <-chan struct{} { return s.draining }

// View is the last answer of the registry. Nothing may be decided by it: scripts check for themselves.
func (s *Stay) View() View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// OnCancel sets what is called for each request to cancel a run, again with every heartbeat while the request stands.
// It is called on goroutines of the stay, perhaps two at once, and must not block: the lease waits for it.
func (s *Stay) OnCancel(fn func(Cancel)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCancel = fn
}

// TakeWake returns the due time that the last wake-up named, once; zero means "now", and false that there was none.
func (s *Stay) TakeWake() (time.Time, bool) {
	ms := s.wakeAt.Swap(noWake)
	if ms == noWake {
		return time.Time{}, false
	}
	return store.FromMs(ms), true
}

// Reconnected reports, once, that Redis was connected to again. It may be another one since, or the same one from an
// earlier moment: what was written last may be lost.
func (s *Stay) Reconnected() bool { return s.again.Swap(false) }

// ClaimsInDoubt reports, once, that Redis may have gone back to an earlier moment, so that the consumer may be thought to
// hold what it has settled. Work rings for it.
func (s *Stay) ClaimsInDoubt() bool { return s.claims.Swap(false) }

const noWake = int64(1<<63 - 1)

// wake notes when to look for work (0: now) and rings.
func (s *Stay) wake(ms int64) {
	for {
		old := s.wakeAt.Load()
		if old <= ms || s.wakeAt.CompareAndSwap(old, ms) {
			break
		}
	}
	s.Work.Ring()
}

// Doubt makes the instance ask Redis at once who leads. Call it when a script answered [queue.ErrNotLeader] or
// [queue.ErrFenced].
func (s *Stay) Doubt() { s.beat.Ring() }

// Look has this instance's consumer look for work now. The messages of Redis would say so too, but they can be lost,
// and at start there is nobody to hear them yet.
func (s *Stay) Look() { s.wake(0) }

// TakeBack gives back what dead generations were running. A leader calls it before it opens the gate, so that no slot is
// dropped for overlapping a run that is known to be dead. It returns within half a lease, with an error if a generation
// could not be taken back. One that holds what only another release can read is no error.
func (s *Stay) TakeBack(ctx context.Context) error {
	if s.takeBack == nil {
		return nil
	}
	return s.takeBack(ctx)
}

// Lease is how long the instance is believed to live after a heartbeat.
func (s *Stay) Lease() time.Duration { return s.lease }

// Refused notes that Redis lets this instance take no work. Work rings when an answer of the registry says that it may.
func (s *Stay) Refused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// Watch notes that the consumer of what is named so relies on being woken, until it notes "". Should Redis have forgotten
// that, as it may when it loses its last writes, the next heartbeat rings Work.
func (s *Stay) Watch(reads string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = reads
}

func (s *Stay) watches() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// Lead calls fn for each term of leadership, one after the other, until the stay ends or drains. fn's context ends with
// the term, with a cause; then fn must return. If fn returns while the term lives, it is called again: after Redis has
// said that this instance still leads, and a pause that grows to a heartbeat.
func (s *Stay) Lead(fn func(ctx context.Context, t queue.Term)) {
	var last *term // not its epoch: a Redis that lost its last writes may give one twice
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
func (s *Stay) confirmed(t *term, d time.Duration) bool {
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
func (s *Stay) see(v View) (before, after int64) {
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
	case old.Epoch == v.Epoch && old.Open && !v.Open:
		s.endTerm(errShut) // another term begins, which opens it
	}
	if leads && s.term == nil && s.ctx.Err() == nil {
		t := &term{Term: queue.Term{Instance: s.ID, Gen: s.Gen, Epoch: v.Epoch}, began: time.Now()}
		t.ctx, t.cancel = context.WithCancelCause(s.ctx)
		s.term = t
		close(s.changed)
		s.changed = make(chan struct{})
	}
	if s.term != nil {
		after = s.term.Epoch
	}
	// Being allowed may change with nobody else to notice, as when this instance becomes ready; and the consumer may have
	// asked in between.
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
func (s *Stay) endTerm(cause error) {
	if s.term != nil {
		s.term.cancel(cause)
		s.term = nil
	}
}

// resign ends the term, and there is no other in this stay, whatever Redis hears of it.
func (s *Stay) resign() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resigned = true
	s.endTerm(ErrResigned)
}

// drain begins the end: nothing more is claimed.
func (s *Stay) drain() { close(s.draining) }

// end ends the stay: everything that hangs on its context is cancelled.
func (s *Stay) end(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endTerm(cause)
	s.cancel(cause)
	s.trustTimer.Stop()
}

func (s *Stay) cancelRuns(list []Cancel) {
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
