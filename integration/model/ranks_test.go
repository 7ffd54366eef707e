package model

// grace is how long a release whose last instance was lost still counts as present.
const grace = int64(60_000)

// rank decides which instance is newer.
type rank struct{ order, gen int64 }

func (r rank) less(o rank) bool { return r.order < o.order || r.order == o.order && r.gen < o.gen }

// member is a registered instance, as the book has it.
type member struct {
	id, release string
	rank        rank
	ready       bool
	drains      bool
	standby     bool
	resigned    bool  // a person asked it to
	lease       int64 // when it ends
}

// presence is a release's order, and when its last instance was lost (0 while it has an instance).
type presence struct{ order, gone int64 }

func (m member) candidate(now int64) bool {
	return m.ready && !m.drains && !m.standby && m.lease > now
}

// before reports whether a member leads rather than another one: it is newer, but a member that was asked to resign comes
// later, and a suspected one last.
func (b *book) before(m, o member) bool {
	if lost := b.suspected(m); lost != b.suspected(o) {
		return !lost
	}
	if m.resigned != o.resigned {
		return o.resigned
	}
	return o.rank.less(m.rank)
}

// best returns the instance that must lead: the newest that is ready and live, and was not asked to resign
// or suspected.
func (b *book) best(now int64) (member, bool) {
	var best member
	found := false
	for _, m := range b.members {
		if m.candidate(now) && (!found || b.before(m, best)) {
			best, found = m, true
		}
	}
	return best, found
}

// proof is how long an instance must stay ready until its release has proven itself.
const proof = int64(120_000)

// strike is how often a release was lost soon after becoming ready, and when last.
type strike struct{ n, at int64 }

// become makes a member ready.
func (b *book) become(m member, now int64) {
	m.ready = true
	b.members[m.rank.gen] = m
	delete(b.trial, m.rank.gen)
	if !m.standby {
		b.trial[m.rank.gen] = now + proof
	}
}

// pardon makes the newest instance on probation ready if no other could lead.
func (b *book) pardon(now int64) {
	if best, ok := b.waiting(now); ok {
		b.become(best, now)
	}
}

// waiting returns the newest instance on probation.
func (b *book) waiting(now int64) (best member, ok bool) {
	for gen, m := range b.members {
		if _, on := b.trial[gen]; on && !m.ready && m.lease > now && best.rank.less(m.rank) {
			best, ok = m, true
		}
	}
	return best, ok
}

// probation returns how much longer an instance that says it is ready stays on probation.
func (b *book) probation(m member, now int64) int64 {
	n := b.strikes[m.release].n
	rival := false
	for _, o := range b.members {
		rival = rival || o.candidate(now) && !b.suspected(o) && o.release != m.release
	}
	if n == 0 || m.standby || !rival {
		return 0
	}
	most := min(int64(5000)<<(n-1), 300_000) // by leases of the default
	ends, ok := b.trial[m.rank.gen]
	if !ok {
		ends = m.rank.gen + most
	}
	return max(min(ends, now+most)-now, 0)
}

func (b *book) elect(now int64) {
	best, ok := b.best(now)
	switch {
	case !ok || b.suspected(best): // a member on probation leads before a suspected one
		b.pardon(now)
		best, ok = b.best(now)
	case best.resigned && !b.free(now):
		b.recall(best)
	}
	if !ok {
		b.leader, b.open = 0, false
		return
	}
	incumbent, is := b.members[b.leader]
	if b.rule.lead == "sticky" && is && !incumbent.resigned && !b.suspected(incumbent) && incumbent.candidate(now) && incumbent.rank.order == best.rank.order {
		return
	}
	b.leader = best.rank.gen
}

// free reports whether a candidate is there that was not asked to resign, though it may be suspected: then a request to resign
// holds on.
func (b *book) free(now int64) bool {
	for _, m := range b.members {
		if m.candidate(now) && !m.resigned {
			return true
		}
	}
	return false
}

// sweep removes the members whose lease ran out.
func (b *book) sweep(now int64) {
	lost := map[string]int64{}
	found := false
	for gen, m := range b.members {
		if m.lease <= now {
			found = true
			delete(b.members, gen)
			delete(b.suspects, m.id)
			b.orphans[gen] = true
			end := m.lease
			if m.drains {
				end = 0 // it drained, which counts as leaving
			}
			b.over(m, end, now)
			if m.resigned { // the request is kept from now on
				b.asked[m.id] = request{"resign", m.rank.gen, now}
			}
			lost[m.release] = max(lost[m.release], end)
		}
	}
	for release, end := range lost {
		switch p, ok := b.releases[release]; {
		case !ok || b.present(release):
		case end == 0:
			b.absent(release)
		default:
			b.releases[release] = presence{p.order, end}
		}
	}
	if found {
		b.elect(now)
	}
}

func (b *book) absent(release string) {
	delete(b.releases, release)
	delete(b.strikes, release)
}

// over notes that a generation is gone: lost, or left (0).
func (b *book) over(m member, lost, now int64) {
	gen := m.rank.gen
	if ends, ok := b.trial[gen]; ok && lost > 0 && m.ready && !m.drains && ends-proof > b.strikes[m.release].at {
		b.strikes[m.release] = strike{b.strikes[m.release].n + 1, now}
	}
	delete(b.trial, gen)
	p, ok := b.declarers[gen]
	switch {
	case ok && lost > 0:
		b.declarers[gen] = presence{p.order, lost}
	case ok:
		delete(b.declarers, gen)
	}
}

func (b *book) present(release string) bool {
	for _, m := range b.members {
		if m.release == release {
			return true
		}
	}
	return false
}
