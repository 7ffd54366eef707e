package consumer

import (
	"slices"
	"sync"
	"time"
)

// Pool is workers that the consumers of several partitions share, in one process. A call for a few tasks costs about as much as one for
// many, so consumers take turns: one with a turn takes many workers, and keeps what its runs give back until the turn is over. Others
// stand in line, and the first gets a quarter of the pool (a third, if they are three), or what has become free within linger. So a
// partition with much to do holds up no other for longer than a turn and a run. While nobody waits, a consumer takes half of those that
// are free, and waits for nothing. The dispatcher's own tasks have workers besides, in each partition.
type Pool struct {
	size      int
	consumers int

	mu    sync.Mutex
	used  int
	line  []*seat // those that wait for workers
	armed bool    // overdue will be called
	ripe  bool    // the first in line has waited for linger: it gets what there is
}

const (
	turn   = 10 * time.Millisecond
	linger = time.Millisecond
	// lendAt is how long a call keeps the workers that it holds. A node that hangs holds up no other partitions for longer.
	lendAt = 250 * time.Millisecond
)

// NewPool returns a pool of so many workers for so many consumers: the Concurrency of each.
func NewPool(workers, consumers int) *Pool { return &Pool{size: workers, consumers: consumers} }

// seat is a consumer's place at a pool.
type seat struct {
	pool *Pool
	bell chan struct{} // rings when it is the consumer's turn
	lend *time.Timer

	// The pool's mutex is held for these.
	taken int           // workers that the consumer uses: those of its runs, and those that it holds for a call
	held  int           // of these: those that it holds
	began time.Time     // when its turn began
	want  int           // how many it waits for
	sent  time.Time     // when its call was sent, zero if none is under way
	usual time.Duration // how long its last call took
	away  bool          // it makes a call, or waits until it may try again: others go first
	lasts bool          // it makes a call that lasts: others have what it held
}

func (p *Pool) seat() *seat {
	s := &seat{pool: p, bell: make(chan struct{}, 1)}
	s.lend = time.AfterFunc(time.Hour, s.lendHeld)
	s.lend.Stop()
	return s
}

// take gives the consumer up to so many workers more, to hold. If it gets none and waits is set, it stands in line: its bell rings when
// it should ask again.
func (s *seat) take(most int, waits bool) int {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.size - p.used
	n := min(most, free)
	first, its := p.first(), time.Since(s.began) < turn
	switch {
	case its: // the workers that its runs gave back are its own again
	case first != nil && first != s, !p.enough(most):
		n = 0
	case first == nil:
		n = min(n, (free+1)/2)
	}
	if n > 0 && !its {
		s.began = time.Now()
	}
	at := slices.Index(p.line, s)
	switch {
	case n > 0 && at >= 0:
		p.line, p.ripe = slices.Delete(p.line, at, at+1), false
	case n <= 0 && at < 0 && waits && most > 0:
		s.want = most
		p.line = append(p.line, s)
	}
	n = max(n, 0)
	s.held += n
	p.set(s, s.taken+n)
	return n
}

// note says how many workers the runs of the consumer have, and how many it holds for a call.
func (s *seat) note(runs, held int) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.lasts {
		held = 0
	}
	s.held = held
	s.pool.set(s, runs+held)
}

// calls says that the consumer makes a call.
func (s *seat) calls() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.away, s.lasts, s.sent = true, false, time.Now()
	s.lend.Reset(max(lendAt, min(2*s.usual, callTimeout))) // calls to a node that is slow, and not dead, have their time
	s.pool.ring()
}

// lendHeld gives others the workers that a call keeps for too long. The bell tells the consumer, whose runs may have ended meanwhile.
func (s *seat) lendHeld() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	if s.sent.IsZero() || s.lasts {
		return // the answer came first
	}
	s.lasts = true
	s.pool.set(s, s.taken-s.held)
	s.held = 0
	s.call()
}

// lends reports whether the call that is under way lasts.
func (s *seat) lends() bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.lasts
}

// answered says that the call is over, and that the consumer needs so many workers for the tasks that it claimed. It returns how many it
// gets in place of those that it has lent, before all who wait. Lent is false if it still has those that it held.
func (s *seat) answered(need int, ok bool) (got int, lent bool) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	s.lend.Stop()
	if s.usual = 0; ok {
		s.usual = time.Since(s.sent)
	}
	s.sent = time.Time{}
	if !s.lasts {
		return 0, false
	}
	s.lasts = false
	s.held = max(min(need, p.size-p.used), 0)
	p.set(s, s.taken+s.held)
	return s.held, true
}

// back says that the consumer may make a call again.
func (s *seat) back() {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.away = false
	s.pool.ring()
}

// waits reports whether the consumer stands in line.
func (s *seat) waits() bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return slices.Contains(s.pool.line, s)
}

// quit takes the consumer out of the line.
func (s *seat) quit() {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.line, s); at >= 0 {
		p.line = slices.Delete(p.line, at, at+1)
		p.ring()
	}
}

// leave takes the consumer out of the pool.
func (s *seat) leave() {
	s.lend.Stop()
	s.quit()
	s.note(0, 0)
}

// call rings the bell.
func (s *seat) call() {
	select {
	case s.bell <- struct{}{}:
	default: // it rings already
	}
}

// set changes what a consumer uses.
func (p *Pool) set(s *seat, n int) {
	p.used += n - s.taken
	s.taken = n
	p.ring()
}

// ring tells the first in line if there is enough for it.
func (p *Pool) ring() {
	switch s := p.first(); {
	case s == nil || p.used >= p.size:
	case p.enough(s.want):
		s.call()
	case !p.armed:
		p.armed = true
		time.AfterFunc(linger, p.overdue)
	}
}

// overdue is called when the first in line has waited for linger.
func (p *Pool) overdue() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.ripe = false, len(p.line) > 0
	p.ring()
}

// first returns who is first of those in line that may make a call, or nil.
func (p *Pool) first() *seat {
	for _, s := range p.line {
		if !s.away {
			return s
		}
	}
	return nil
}

// enough reports whether it is worth a call to take what is free, for a consumer that wants so many.
func (p *Pool) enough(want int) bool {
	return p.ripe || p.size-p.used >= min(want, max(p.size/min(p.consumers, 4), 1))
}
