package model

import (
	"fmt"
	"maps"
)

func (b *book) judgeRegistry(w *world, c call, a answer, before disk) {
	led, epoch := b.leader, b.epoch
	m, known := b.members[c.gen]
	known = known && m.id == c.id
	switch c.op {
	case "join":
		b.judgeJoin(w, c, a)
	case "ready", "resign":
		b.sweep(w.now)
		b.judgeState(w.now, c, a)
	case "beat":
		m.lease = w.now + lease
		b.members[c.gen] = m
		if ends, ok := b.trial[c.gen]; ok && ends <= w.now && m.ready && !m.drains {
			delete(b.trial, c.gen)
			delete(b.strikes, m.release)
		}
		wronged := b.lives(w, m)
		b.sweep(w.now)
		if b.leader == 0 || wronged && b.leader != c.gen {
			b.elect(w.now)
		}
		b.judgeBeat(w, c, a)
		b.judgePost(w, b.members[c.gen], a)
	case "look out", "suspect":
		b.judgeLook(w, c, a, before)
	case "leave":
		if known {
			b.judgeLeave(w.now, c.gen, m)
		}
		if b.asked[c.id].gen == c.gen {
			delete(b.asked, c.id)
		}
	case "open":
		b.open = true
	case "stand down":
		b.sweep(w.now)
		b.judgeStandDown(w.now, c, m, a)
	case "promote":
		b.judgePromote(w, c)
	case "ask to resign", "ask to drain":
		b.judgeAsk(w.now, c, a)
	case "declare":
		b.judgeDeclare(w.now, m, a)
		return
	}
	v := a.view
	if v.LeaderGen != b.leader || v.Open != b.open {
		broken(5, "after %s of %s %q (%d) leads, gate open: %v; must be %d, %v", c.op, c.id, v.Leader, v.LeaderGen, v.Open, b.leader, b.open)
	}
	gen := c.gen
	if c.op == "join" {
		gen = a.gen
	}
	if may := c.op != "leave" && b.permits(gen); v.May != may {
		broken(5, "after %s %s is told that it may take work: %v; must be %v", c.op, c.id, v.May, may)
	}
	if changed := b.leader != led; changed && v.Epoch <= epoch || !changed && v.Epoch != epoch {
		broken(1, "epoch %d after %d, leader %d after %d", v.Epoch, epoch, b.leader, led)
	}
	b.epoch = v.Epoch
}

// judgeState: an instance that says it is ready becomes ready or is on probation. One that resigns drains.
func (b *book) judgeState(now int64, c call, a answer) {
	m := b.members[c.gen]
	wait := int64(0)
	switch {
	case m.drains:
	case c.op == "resign":
		m.drains = true
		b.members[c.gen] = m
		delete(b.trial, c.gen)
		b.relieve(m.id)
		b.elect(now)
	case m.ready:
	default:
		if wait = b.probation(m, now); wait > 0 {
			b.trial[c.gen] = now + wait
		} else {
			b.become(m, now)
			b.elect(now)
		}
	}
	if got := a.view.Probation.Milliseconds(); got != wait {
		broken(5, "%s is on probation for %d; must be %d: %v", c.id, got, wait, b.strikes)
	}
}

// judgeBeat: the leader is told of all generations to recover, and every instance of all requests to cancel.
func (b *book) judgeBeat(w *world, c call, a answer) {
	if b.leader == c.gen && len(a.orphans) != min(len(b.orphans), 16) { // a few at a time
		broken(3, "%s hears that %v are to be recovered; must be %v", c.id, a.orphans, b.orphans)
	}
	if asked := len(w.disk[keys.Cancel].fields); a.count != asked {
		broken(4, "%s hears of %d runs to be cancelled; must be %d", c.id, a.count, asked)
	}
}

// drainsAll reports whether a release has instances, and all of them drain.
func (b *book) drainsAll(release string) bool {
	any := false
	for _, m := range b.members {
		if m.release == release {
			if !m.drains {
				return false
			}
			any = true
		}
	}
	return any
}

func (b *book) judgeJoin(w *world, c call, a answer) {
	b.sweep(w.now)
	for release, p := range b.releases {
		if p.gone > 0 && w.now-p.gone >= grace {
			b.absent(release)
		}
	}
	again, leaves := false, b.drainsAll(c.release)
	for gen, m := range b.members {
		if m.id == c.id {
			delete(b.members, gen)
			b.orphans[gen] = true
			if c.order > 0 {
				delete(b.trial, gen) // it has run all the while, so it did not crash
			}
			b.over(m, w.now, w.now)
			again = true
		}
	}
	delete(b.suspects, c.id)
	if a.gen <= b.gen || a.gen <= c.gen {
		broken(5, "generation %d after %d", a.gen, max(b.gen, c.gen))
	}
	if c.order == 0 && leaves {
		b.absent(c.release)
	}
	order := b.releases[c.release].order
	if order == 0 {
		order = c.order
	}
	if order == 0 && a.order <= b.order || order > 0 && a.order != order {
		broken(5, "%s got order %d; the largest was %d, its own %d", c.release, a.order, b.order, order)
	}
	b.joins++
	b.gen, b.order = a.gen, max(a.order, b.order)
	b.releases[c.release] = presence{order: a.order}
	m := member{id: c.id, release: c.release, standby: c.standby, rank: rank{a.order, a.gen}, lease: w.now + lease}
	if r, ok := b.asked[c.id]; ok && c.gen != 0 && r.gen == c.gen { // a process that comes back was asked, and no new one
		m.drains, m.resigned = r.what == "drain", r.what == "resign"
		b.asked[c.id] = request{r.what, a.gen, w.now}
	} else {
		delete(b.asked, c.id)
	}
	b.members[a.gen] = m
	if again {
		b.elect(w.now)
	}
}

// judgePromote: the release becomes newer than all others.
func (b *book) judgePromote(w *world, c call) {
	b.sweep(w.now)
	order := number(w.disk.get(keys.Meta, "order"))
	if order <= b.order {
		broken(5, "%s was promoted to order %d; the largest was %d", c.release, order, b.order)
	}
	b.order = order
	b.releases[c.release] = presence{order, b.releases[c.release].gone}
	delete(b.strikes, c.release)
	candidate := false
	for gen, m := range b.members {
		if m.release == c.release {
			m.rank.order = order
			b.members[gen] = m
			if _, ok := b.trial[gen]; ok && !m.ready {
				b.become(m, w.now)
			}
			if _, ok := b.declarers[gen]; ok {
				b.declarers[gen] = presence{order: order}
			}
			m = b.members[gen]
			candidate = candidate || m.ready && !m.drains && !m.standby && !m.resigned
		}
	}
	for _, m := range b.members {
		if m.release == c.release && m.resigned && !candidate {
			b.recall(m)
		}
	}
	b.elect(w.now)
}

func (b *book) judgeLeave(now, gen int64, m member) {
	delete(b.members, gen)
	delete(b.suspects, m.id)
	b.relieve(m.id)
	b.over(m, 0, now)
	for _, e := range b.tasks {
		if e.place == running && e.gen == gen {
			b.orphans[gen] = true
		}
	}
	b.sweep(now)
	if !b.present(m.release) {
		b.absent(m.release)
	}
	b.elect(now)
}

// judgeStandDown: the leader hands over if another instance can lead, and leads on if none can.
func (b *book) judgeStandDown(now int64, c call, m member, a answer) {
	others := *b
	others.members = maps.Clone(b.members)
	delete(others.members, c.gen)
	best, can := others.best(now)
	can = can && !b.suspected(best)
	if _, waits := others.waiting(now); waits {
		can = true
	}
	if a.may != can {
		broken(5, "%s stood down: %v, and another could lead: %v", c.id, a.may, can)
	}
	if can {
		m.ready = false
		b.members[c.gen] = m
		delete(b.trial, c.gen)
		b.elect(now)
	}
}

// judgeDeclare: an older instance does not declare while a newer one that has declared is present, or was lost a moment ago.
// It may declare when the newer one is gone.
func (b *book) judgeDeclare(now int64, m member, a answer) {
	may := true
	for gen, p := range b.declarers {
		switch r := (rank{p.order, gen}); {
		case !b.declarer(now, m, r, p.gone):
			delete(b.declarers, gen)
		case m.rank.less(r):
			may = false
		}
	}
	if a.may != may {
		broken(9, "%s %v may declare: %v; those who did and are there: %v", m.id, m.rank, a.may, b.declarers)
	}
	if may {
		b.declarers[m.rank.gen] = presence{order: m.rank.order}
	}
}

// declarer reports whether an instance that declared counts as present. Within the same release that instance itself must be
// there; of another release any instance counts.
func (b *book) declarer(now int64, m member, r rank, gone int64) bool {
	for _, o := range b.members {
		if !o.drains && (o.rank == r || o.rank.order == r.order && r.order != m.rank.order) {
			return true
		}
	}
	if r.order != m.rank.order {
		gone = 0
		for _, p := range b.releases {
			if p.order == r.order {
				gone = p.gone
			}
		}
	}
	return gone > 0 && now < gone+grace
}

// checkHolders: a live instance that believes it holds a task does hold it, so no task has two holders.
func (b *book) checkHolders(w *world) {
	holds := map[string]string{}
	for i := range w.procs {
		p := &w.procs[i]
		if m, ok := b.members[p.gen]; !ok || m.id != p.id || m.lease <= w.now || p.phase == out {
			continue
		}
		for _, c := range p.claims {
			if other := holds[c.id]; other != "" {
				broken(4, "%s and %s both hold %s", p.id, other, c.id)
			}
			holds[c.id] = p.id
			if e := b.tasks[c.id]; !p.unsure && (e.place != running || e.gen != p.gen || e.fence != c.fence) {
				broken(4, "%s lives and holds %s under %d, which is %v", p.id, c.id, c.fence, e)
			}
		}
	}
}

// text returns the entry that Redis must have of a member.
func (b *book) text(m member) string {
	state, standby := "s", 0
	switch {
	case m.drains:
		state = "d"
	case m.ready:
		state = "r"
	}
	switch {
	case m.standby:
		standby = 1
	case m.resigned:
		standby = 2
	}
	return fmt.Sprintf("%d %d %s %d %s %s %s", m.rank.gen, m.rank.order, state, standby, b.rule.lead, b.rule.consume, m.release)
}

// checkTrial compares the instances that are on probation or must prove themselves, and the strikes of releases.
func (b *book) checkTrial(w *world) {
	if n, m := len(w.disk[keys.Trial].fields), len(w.disk[keys.Strikes].fields); n != len(b.trial) || m != len(b.strikes) {
		broken(5, "%d are on trial, %d releases have strikes; must be %v, %v", n, m, b.trial, b.strikes)
	}
	for gen, ends := range b.trial {
		if f, _ := w.disk.find(keys.Trial, fmt.Sprint(gen)); int64(f.score) != ends {
			broken(5, "%d is on trial until %v; must be %d", gen, f.score, ends)
		}
	}
	for release, s := range b.strikes {
		if got := w.disk.get(keys.Strikes, release); got != fmt.Sprint(s.n, " ", s.at) {
			broken(5, "the strikes of %s are %q; must be %v", release, got, s)
		}
	}
}

// checkRegistry compares the members, the leader, and the generations to recover.
func (b *book) checkRegistry(w *world) {
	if got := w.disk.get(keys.Leader, "gen"); number(got) != b.leader {
		broken(5, "%q leads, and %d must", got, b.leader)
	}
	if epoch, open := number(w.disk.get(keys.Leader, "epoch")), w.disk.get(keys.Leader, "open") == "1"; epoch != b.epoch || open != b.open {
		broken(5, "the epoch is %d, the gate open: %v; must be %d, %v", epoch, open, b.epoch, b.open)
	}
	if m, ok := b.members[b.leader]; ok && w.disk.get(keys.Leader, "order") != fmt.Sprint(m.rank.order) {
		broken(5, "the leader's order is known as %q; must be %d", w.disk.get(keys.Leader, "order"), m.rank.order)
	}
	for _, m := range b.members {
		end, _ := w.disk.find(keys.Instances, m.id)
		text := w.disk.get(keys.Members, m.id)
		if text != b.text(m) || int64(end.score) != m.lease {
			broken(5, "%v is registered, and Redis has %q with a lease until %v", m, text, end.score)
		}
	}
	if n := len(w.disk[keys.Members].fields); n != len(b.members) {
		broken(5, "%d are registered; must be %d", n, len(b.members))
	}
	for release, p := range b.releases {
		if got := w.disk.get(keys.Releases, release); got != fmt.Sprint(p.order, " ", p.gone) {
			broken(5, "release %s is known as %q; must be %v", release, got, p)
		}
	}
	if n := len(w.disk[keys.Releases].fields); n != len(b.releases) {
		broken(5, "%d releases are known; must be %d", n, len(b.releases))
	}
	b.checkTrial(w)
	b.checkAsked(w)
	b.checkSuspects(w)
	if n := len(w.disk[keys.Declarers].fields); n != len(b.declarers) {
		broken(9, "%d are known that declared; must be %v", n, b.declarers)
	}
	for gen, p := range b.declarers {
		if got := w.disk.get(keys.Declarers, fmt.Sprint(gen)); got != fmt.Sprint(p.order, " ", p.gone) {
			broken(9, "that %d declared is known as %q; must be %v", gen, got, p)
		}
	}
	if n := len(w.disk[keys.Orphans].fields); n != len(b.orphans) {
		broken(4, "%d generations are declared dead; must be %d", n, len(b.orphans))
	}
	for gen := range b.orphans {
		if _, ok := w.disk.find(keys.Orphans, fmt.Sprint(gen)); !ok {
			broken(3, "nobody is told that generation %d is to be recovered", gen)
		}
	}
}
