package api

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// A sender may take as much of the bytes, the streams and the connections as it leaves to others. So a sender alone has half,
// each of k greedy ones has a part of k+1, and a newcomer always finds one more such part.

// sender is what the holder of one token uses now.
type sender struct {
	pace  *rate.Limiter
	slots chan struct{} // of those that are worked on at once: half of all
	bytes atomic.Int64
	conns int // guarded by the connections
}

// senders knows the senders by their names.
type senders struct {
	mu   sync.Mutex
	each map[string]*sender
}

// of returns a sender.
func (s *senders) of(name string) *sender {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.each[name]; one != nil {
		return one
	}
	if len(s.each) >= knownAtMost { // tokens come and go; a request under way gives back to the sender that it began with
		clear(s.each)
	}
	one := &sender{pace: rate.NewLimiter(perSender, perSender), slots: make(chan struct{}, atOnce/2)}
	s.each[name] = one
	return one
}

// budget is a number of bytes.
type budget struct{ free atomic.Int64 }

// share is what a sender may take of a budget.
type share struct {
	all *budget
	own *sender
}

// take takes n bytes, or none.
func (s share) take(n int) bool {
	if own, left := s.own.bytes.Add(int64(n)), s.all.free.Add(-int64(n)); own <= left {
		return true
	}
	s.give(n)
	return false
}

func (s share) give(n int) {
	s.own.bytes.Add(-int64(n))
	s.all.free.Add(int64(n))
}

// places are a number of places to wait in or to work at. A sender takes as many as each says; 0: as many as it leaves to others.
type places struct {
	each int

	mu    sync.Mutex
	free  int
	taken map[string]int
	moved chan struct{} // closed when a place becomes free
}

func newPlaces(free, each int) *places {
	return &places{each: each, free: free, taken: map[string]int{}, moved: make(chan struct{})}
}

// enter waits until the sender may take a place, and takes it. It returns an error if ctx ends first.
func (p *places) enter(ctx context.Context, who string) error {
	for {
		p.mu.Lock()
		own := p.taken[who] + 1
		if p.free > 0 && own <= p.each || p.each == 0 && own < p.free {
			p.taken[who], p.free = own, p.free-1
			p.mu.Unlock()
			return nil
		}
		moved := p.moved
		p.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// leave gives a place back.
func (p *places) leave(who string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free++
	if p.taken[who]--; p.taken[who] == 0 {
		delete(p.taken, who)
	}
	close(p.moved)
	p.moved = make(chan struct{})
}
