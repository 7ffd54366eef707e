package histories

import "math"

// crowd is how many instances there are at most.
const crowd = 4

// forever is the end of a lease of which nobody heard when it began.
const forever = math.MaxInt64

// leaseAsk is a call of the registry, or of the leader, by the instance numbered who in its generation.
type leaseAsk struct {
	op              string // join ready beat resign leave open advance read
	who             int
	gen, epoch      int64
	expect, becomes string // advance: the last run
}

// leaseSaid is what was replied.
type leaseSaid struct {
	lost    bool
	refused string
	now     int64 // by the clock of Redis (ms), 0 where the reply does not say

	gen, order int64 // join
	leader     int   // -1: nobody
	leaderGen  int64
	epoch      int64
	open       bool

	waits bool   // ready: it is on probation
	last  string // read
	moved bool   // advance: the last run was not as expected
}

// enrolled is what there is to know of an instance: its lease ends at some moment from lo to hi.
type enrolled struct {
	gen, order int64 // gen -1: it joined, and nobody was told as what
	ready      bool
	draining   bool
	waits      bool // it said that it was ready, and is on probation
	lo, hi     int64
}

// leases is who is there, who leads, and how far the leaders have brought the schedule.
type leases struct {
	now       int64 // Redis is at least there
	members   [crowd]enrolled
	leader    int
	leaderGen int64
	epoch     int64 // the last one that was seen
	risen     bool  // it is larger now, and nobody was told by how much
	open      bool
	top       int64 // the largest generation
	last      string
}

var leasesSpec = spec[leases, leaseAsk, leaseSaid]{start: leases{leader: -1}, step: leases.after}

// after is what may be once a call was made.
func (s leases) after(a leaseAsk, r leaseSaid) []leases {
	if a.op == "read" {
		if s.last == "" { // as it was made before the run
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
	return append(s.does(a, r), s) // or it never was done
}

// only is one state that may follow, or none.
func only[S any](s S, ok bool) []S {
	if !ok {
		return nil
	}
	return []S{s}
}

// refuses is what must have been for a call to be refused: nothing was done.
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

// lives says whether the lease of the caller may run, and has it run.
func (s *leases) lives(a leaseAsk) bool {
	m := &s.members[a.who]
	if m.gen != a.gen || m.hi <= s.now {
		return false
	}
	m.lo = max(m.lo, s.now+1)
	return true
}

// leads says whether the term of the caller is the present one.
func (s *leases) leads(a leaseAsk) bool {
	return s.leader == a.who && s.leaderGen == a.gen && !s.risen && s.epoch == a.epoch
}

// does is what a call does at the moment of the reply, or at any later than now if the reply was lost.
func (s leases) does(a leaseAsk, r leaseSaid) []leases {
	until := int64(forever)
	if !r.lost {
		if r.now < s.now {
			return nil
		}
		s.now, until = r.now, r.now
		for i := range s.members { // what began unheard has begun by now
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

// acts is what each call changes.
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
			return []leases{s} // it is gone already
		}
		s.members[me] = enrolled{}
		return each(s.sweeps(until), (*leases).elect)
	case "beat":
		s.members[me].hi = forever // it is renewed first, and so not swept
		s.members[me].lo = forever
		return each(s.sweeps(until), func(s *leases) {
			s.renew(me, r.lost)
			if s.leader < 0 {
				s.elect()
			}
		})
	}
	var next []leases
	for _, s := range s.sweeps(until) {
		next = append(next, s.states(a, r)...)
	}
	return next
}

// states has an instance be ready, on probation, or draining. How often its release was lost is not kept here: so any
// that is not ready may be put on probation, if another release could lead.
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

// rival says whether one of another release is ready.
func (s *leases) rival(who int) bool {
	for i, m := range s.members {
		if m.ready && releaseOf(i) != releaseOf(who) {
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

// renew begins a lease at the moment of the call, which only a reply tells.
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

// sweeps is who may be left at a moment from now until another, once those whose lease ran out are out.
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

// best is the newest of some.
func (s *leases) best(of func(enrolled) bool) int {
	best := -1
	for i, m := range s.members {
		if of(m) && (best < 0 || m.newer(s.members[best])) {
			best = i
		}
	}
	return best
}

// elect has the newest lead of those that are ready; if there are none, of those on probation.
func (s *leases) elect() {
	best := s.best(func(m enrolled) bool { return m.ready })
	if best < 0 {
		if best = s.best(func(m enrolled) bool { return m.waits }); best >= 0 {
			s.members[best].ready, s.members[best].waits = true, false
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

// shows says whether a reply tells what is, and has the epoch known.
func (s *leases) shows(r leaseSaid) bool {
	if s.risen && r.epoch > s.epoch {
		s.risen, s.epoch = false, r.epoch
	}
	return !s.risen && r.epoch == s.epoch && r.leader == s.leader && r.leaderGen == s.leaderGen && r.open == s.open
}
