package histories

import "math"

// crowd is the most instances.
const crowd = 4

// forever is the end of a lease if no client knows when it began.
const forever = math.MaxInt64

// leaseAsk is a call of the registry, or of the leader, by the instance numbered who in its generation.
type leaseAsk struct {
	op              string // join ready beat look resign leave open advance read
	who             int
	gen, epoch      int64
	expect, becomes string // advance: the last run
}

// leaseSaid is the reply.
type leaseSaid struct {
	lost    bool
	refused string
	now     int64 // by the clock of Redis (ms), 0 where the reply does not say

	gen, order int64 // join
	leader     int   // -1: none
	leaderGen  int64
	epoch      int64
	open       bool

	suspects bool // look: the leader is suspected

	waits bool   // ready: it is on probation
	last  string // read
	moved bool   // advance: the last run was not as expected
}

// enrolled is what is known of an instance: its lease ends at some moment from lo to hi.
type enrolled struct {
	gen, order int64 // gen -1: it joined, and no client knows its generation
	ready      bool
	draining   bool
	waits      bool // it said that it was ready, and is on probation
	suspected  bool
	lo, hi     int64
}

// leases is the state of the registry: the members, the leader, and the schedule's last run.
type leases struct {
	now       int64 // Redis is at least there
	members   [crowd]enrolled
	leader    int
	leaderGen int64
	epoch     int64 // the last one that a reply told
	risen     bool  // it is larger now, and no client knows by how much
	open      bool
	top       int64 // the largest generation
	last      string
}

var leasesSpec = spec[leases, leaseAsk, leaseSaid]{start: leases{leader: -1}, step: leases.after}

// after returns the states that may follow a call.
func (s leases) after(a leaseAsk, r leaseSaid) []leases {
	if a.op == "read" {
		if s.last == "" { // the schedule was made before the run began
			s.last = r.last
		}
		return only(s, r.lost || r.last == s.last)
	}
	if r.refused != "" {
		return s.refuses(a, r.refused)
	}
	if !r.lost {
		return s.does(a, r)
	}
	return append(s.does(a, r), s) // or the call never took effect
}

// only returns the one state that may follow, or none.
func only[S any](s S, ok bool) []S {
	if !ok {
		return nil
	}
	return []S{s}
}

// refuses returns the states in which Redis may refuse a call. A refused call does nothing.
func (s leases) refuses(a leaseAsk, why string) []leases {
	m := s.members[a.who]
	switch why {
	case fenced:
		if m.gen == a.gen {
			s.now = max(s.now, m.lo)
		}
		return []leases{s}
	case notLeader:
		alive := s.lives(a)
		return only(s, alive && !s.leads(a))
	}
	return nil
}

// lives reports whether the caller's lease may run, and from then on assumes that it does.
func (s *leases) lives(a leaseAsk) bool {
	m := &s.members[a.who]
	if m.gen != a.gen || m.hi <= s.now {
		return false
	}
	m.lo = max(m.lo, s.now+1)
	return true
}

// leads reports whether the caller's term is the present one.
func (s *leases) leads(a leaseAsk) bool {
	return s.leader == a.who && s.leaderGen == a.gen && !s.risen && s.epoch == a.epoch
}

// does returns the effect of a call at the moment of the reply or, if the reply was lost, at any moment from now on.
func (s leases) does(a leaseAsk, r leaseSaid) []leases {
	until := int64(forever)
	if !r.lost {
		if r.now < s.now {
			return nil
		}
		s.now, until = r.now, r.now
		for i := range s.members { // a lease whose beginning no client heard of has begun by now
			if m := &s.members[i]; m.hi == forever {
				m.hi = r.now + leaseTime.Milliseconds()
			}
		}
	}
	if a.op != "join" && a.op != "leave" && !s.lives(a) {
		return nil
	}
	var next []leases
	for _, s := range s.acts(a, r, until) {
		if r.lost || a.op == "advance" || s.shows(r) {
			next = append(next, s)
		}
	}
	return next
}

// acts returns the states to which a call leads.
func (s leases) acts(a leaseAsk, r leaseSaid, until int64) []leases {
	me := a.who
	switch a.op {
	case "open":
		s.open = true
		return only(s, s.leads(a))
	case "advance":
		return s.advances(a, r)
	case "join":
		return s.joins(a, r, until)
	case "leave":
		if s.members[me].gen != a.gen {
			return []leases{s} // the instance is gone already
		}
		s.members[me] = enrolled{}
		return each(s.sweeps(until), (*leases).elect)
	case "beat":
		s.members[me].hi = forever // the script renews the lease before it sweeps
		s.members[me].lo = forever
		wronged := s.members[me].suspected
		s.members[me].suspected = false
		return each(s.sweeps(until), func(s *leases) {
			s.renew(me, r.lost)
			if s.leader < 0 || wronged {
				s.elect()
			}
		})
	}
	var next []leases
	for _, s := range s.sweeps(until) {
		if a.op == "look" {
			next = append(next, s.looks(a, r)...)
			continue
		}
		next = append(next, s.states(a, r)...)
	}
	return next
}

// silence is how long a leader is silent, at least, before it is suspected.
const silence = leaseTime / 2

// looks makes the leader a suspect, or does nothing. The specification does not know which instance is the lookout, nor what
// it saw before. But a heartbeat is a sign of life.
func (s leases) looks(a leaseAsk, r leaseSaid) (next []leases) {
	if !r.suspects {
		next = append(next, s)
	}
	if !r.suspects && !r.lost || s.leader < 0 || s.leader == a.who {
		return next
	}
	led := &s.members[s.leader]
	if !r.lost {
		latest := r.now + (leaseTime - silence).Milliseconds() // when its lease ends, if it has been silent
		if led.lo > latest {
			return next
		}
		led.hi = min(led.hi, latest)
	}
	led.suspected = true
	s.elect()
	return append(next, s)
}

// states makes an instance ready, on probation, or draining. The specification does not count the strikes of releases. So any
// instance that is not ready may be put on probation, if another release could lead.
func (s leases) states(a leaseAsk, r leaseSaid) (next []leases) {
	m := &s.members[a.who]
	if m.draining || a.op == "ready" && m.ready {
		return only(s, !r.waits)
	}
	if a.op == "ready" && (r.waits || r.lost) && s.rival(a.who) {
		held := s
		held.members[a.who].waits = true
		next = append(next, held)
	}
	if !r.waits {
		m.ready, m.draining, m.waits = a.op == "ready", a.op == "resign", false
		s.elect()
		next = append(next, s)
	}
	return next
}

// rival reports whether an instance of another release is ready.
func (s *leases) rival(who int) bool {
	for i, m := range s.members {
		if m.ready && !m.suspected && releaseOf(i) != releaseOf(who) {
			return true
		}
	}
	return false
}

func (s leases) advances(a leaseAsk, r leaseSaid) []leases {
	if !s.leads(a) {
		return nil
	}
	moved := s.last != a.expect
	if !moved {
		s.last = a.becomes
	}
	return only(s, r.lost || moved == r.moved)
}

func (s leases) joins(a leaseAsk, r leaseSaid, until int64) []leases {
	if !r.lost && r.gen <= s.top {
		return nil // a generation is larger than every earlier one
	}
	return each(s.sweeps(until), func(s *leases) {
		again := s.members[a.who].gen != 0
		s.members[a.who] = enrolled{gen: -1}
		if !r.lost {
			s.members[a.who] = enrolled{gen: r.gen, order: r.order}
			s.top = r.gen
		}
		s.renew(a.who, r.lost)
		if again {
			s.elect()
		}
	})
}

// renew begins a lease at the moment of the call. Only a reply tells that moment.
func (s *leases) renew(who int, unheard bool) {
	m := &s.members[who]
	m.lo = s.now + leaseTime.Milliseconds()
	m.hi = m.lo
	if unheard {
		m.hi = forever
	}
}

func each(list []leases, change func(*leases)) []leases {
	for i := range list {
		change(&list[i])
	}
	return list
}

// sweeps returns the members that may be left at some moment between now and a later one, when expired leases are swept.
func (s leases) sweeps(until int64) []leases {
	var out []leases
	var look func(s leases, i int, found bool)
	look = func(s leases, i int, found bool) {
		if i == crowd {
			if found {
				s.elect()
			}
			out = append(out, s)
			return
		}
		m := s.members[i]
		if m.gen != 0 && m.lo <= until && m.lo != forever {
			gone := s
			gone.members[i] = enrolled{}
			gone.now = max(s.now, m.lo)
			look(gone, i+1, true)
		}
		if m.gen == 0 || m.hi > s.now {
			if m.gen != 0 {
				s.members[i].lo = max(m.lo, s.now+1)
			}
			look(s, i+1, found)
		}
	}
	look(s, 0, false)
	return out
}

// best returns the newest of some instances.
func (s *leases) best(of func(enrolled) bool) int {
	best := -1
	for i, m := range s.members {
		if of(m) && (best < 0 || m.newer(s.members[best])) {
			best = i
		}
	}
	return best
}

// elect makes the newest ready instance lead or, if none is ready, the newest on probation. A suspect leads if no other can.
func (s *leases) elect() {
	best := s.best(func(m enrolled) bool { return m.ready && !m.suspected })
	if best < 0 {
		if best = s.best(func(m enrolled) bool { return m.waits }); best >= 0 {
			s.members[best].ready, s.members[best].waits = true, false
		} else {
			best = s.best(func(m enrolled) bool { return m.ready })
		}
	}
	switch {
	case best < 0 && s.leader < 0, best >= 0 && s.leader == best && s.leaderGen == s.members[best].gen:
		return
	case best < 0 || s.leader < 0:
		s.open = false
	}
	s.leader, s.leaderGen, s.risen = best, 0, true
	if best >= 0 {
		s.leaderGen = s.members[best].gen
	}
}

func (m enrolled) newer(than enrolled) bool {
	return m.order > than.order || m.order == than.order && m.gen > than.gen
}

// shows reports whether a reply agrees with the state, and learns the epoch from it.
func (s *leases) shows(r leaseSaid) bool {
	if s.risen && r.epoch > s.epoch {
		s.risen, s.epoch = false, r.epoch
	}
	return !s.risen && r.epoch == s.epoch && r.leader == s.leader && r.leaderGen == s.leaderGen && r.open == s.open
}
