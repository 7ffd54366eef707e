package api

import (
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// What one sender may take: of the bytes, the streams and the connections as much as it leaves to others. So a sender alone has half,
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
	if len(s.each) >= knownAtMost { // tokens come and go; what requests under way use is given back to the sender that they began with
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
