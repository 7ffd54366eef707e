package histories

import "math"

// lockAsk is a call of one of a lock's contenders.
type lockAsk struct {
	op    string // acquire extend release work
	lock  string
	token int   // a different one for each attempt
	fence int64 // release, work: names the holder if its token is not known
}

// lockSaid is the reply.
type lockSaid struct {
	lost  bool
	ok    bool
	now   int64 // by the clock of Redis (ms), 0 where the reply does not say
	fence int64 // acquire
}

// owner is the holder of a lock, by the scripts. Its lease ends at some moment from lo to hi.
type owner struct {
	now    int64 // Redis is at least there
	token  int   // 0: the lock is free
	fence  int64 // 0: no client was told
	top    int64 // the largest fence that a client was told
	lo, hi int64
}

// scriptsSpec is the promise of a lock's scripts, with each lease to the millisecond.
var scriptsSpec = spec[owner, lockAsk, lockSaid]{step: owner.after, part: func(a lockAsk) string { return a.lock }}

func (s owner) after(a lockAsk, r lockSaid) []owner {
	if !r.lost {
		return s.does(a, r)
	}
	r.ok = true
	return append(s.does(a, r), s)
}

// does returns the states that may follow a call with a reply or, without one, a call at any moment from now on.
func (s owner) does(a lockAsk, r lockSaid) []owner {
	begin := s.now
	if r.now > 0 {
		if r.now < s.now {
			return nil
		}
		if s.hi == math.MaxInt64 { // the lease began before this moment
			s.hi = r.now + lockTime.Milliseconds() + 1
		}
		s.now = r.now
	}
	mine, free := s.mine(a, r)
	switch {
	case a.op == "acquire" && r.ok:
		var next []owner
		if mine.token != 0 && (r.lost || s.fence == 0 && r.fence > s.top || r.fence == s.fence) {
			next = append(next, mine.lease(begin, r))
		}
		if free.now != 0 && (r.lost || r.fence > s.top) {
			free.token, free.fence = a.token, 0
			next = append(next, free.lease(begin, r))
		}
		return next
	case a.op == "acquire":
		held := s.token != 0 && s.token != a.token && s.hi > s.now
		return only(s, held)
	case !r.ok: // another client has the lock, or none
		if s.token != a.token {
			return []owner{s}
		}
		return only(free, free.now != 0)
	case mine.token == 0:
		return nil
	case a.op == "release":
		mine.token = 0
		return []owner{mine}
	}
	return []owner{mine.lease(begin, r)}
}

// mine returns the lock as held by the caller, and the lock as free. Each is the zero owner if it cannot be so at that
// moment.
func (s owner) mine(a lockAsk, r lockSaid) (mine, free owner) {
	if s.token == a.token && s.hi > s.now {
		mine = s
	}
	switch {
	case s.token == 0:
		free = s
		free.now = max(s.now, 1)
	case r.now == 0 || s.lo <= r.now: // its lease may have run out
		free = s
		free.token, free.now = 0, max(s.now, s.lo)
	}
	return mine, free
}

// lease begins a lease. Redis may have read the clock for the expiry before or after the clock in the reply.
func (s owner) lease(begin int64, r lockSaid) owner {
	s.lo, s.hi = begin+lockTime.Milliseconds()-1, math.MaxInt64
	if !r.lost && r.fence != 0 {
		s.fence, s.top = r.fence, max(s.top, r.fence)
	}
	return s
}

// guard is the holder of a lock, as far as clients are told.
type guard struct {
	fence int64 // of the last holder that was told
	held  bool  // that holder has not released the lock
	maybe bool  // a client may have the lock without having been told
}

// locksSpec is the promise to holders of a lock: while the context of one lives, no other has the lock, and each later
// holder has a larger fence.
var locksSpec = spec[guard, lockAsk, lockSaid]{step: guard.after, part: func(a lockAsk) string { return a.lock }}

func (s guard) after(a lockAsk, r lockSaid) []guard {
	next := s
	switch a.op {
	case "acquire":
		switch {
		case r.lost:
			next.maybe = true
			return []guard{s, next}
		case r.ok:
			return only(guard{fence: r.fence, held: true}, r.fence > s.fence)
		}
		return only(s, s.held || s.maybe)
	case "work":
		return only(s, s.held && s.fence == a.fence)
	}
	if s.fence != a.fence {
		return only(s, !r.ok) // another client had the lock already
	}
	next.held = false
	if r.lost {
		return []guard{s, next}
	}
	return []guard{next}
}
