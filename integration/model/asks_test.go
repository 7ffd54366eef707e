package model

import (
	"fmt"
	"slices"
	"time"
)

// request is what a person asked of an instance, and of which generation.
type request struct {
	what string
	gen  int64
	at   int64
}

// asks adds the requests of a person, about each instance that is registered.
func (m *menu) asks() {
	var ids []string
	for _, i := range m.book.members {
		ids = append(ids, i.id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		for _, what := range []string{"resign", "drain"} {
			m.add("ask to "+what, "ask "+id+" to "+what, func(w *world) { w.do(call{op: "ask to " + what, id: id, ask: what}) })
		}
	}
}

// askOf calls the script of a request directly: the package's own functions return no view with a refusal, after which
// another instance may lead all the same.
func (w *world) askOf(c call, a *answer) error {
	values, err := w.run("ask", nil, c.id, c.ask, "somebody", (24 * time.Hour).Milliseconds())
	if err != nil {
		return err
	}
	a.said, a.view = fmt.Sprint(values[0]), viewOf(values[1:])
	return nil
}

// named returns the member with an ID.
func (b *book) named(id string) (member, bool) {
	for _, m := range b.members {
		if m.id == id {
			return m, true
		}
	}
	return member{}, false
}

// judgeAsk: an instance that was asked to resign leads only if no other can, but for those that were asked too. If all are
// asked, the earlier requests end. An instance that was asked to drain neither leads nor claims.
func (b *book) judgeAsk(now int64, c call, a answer) {
	b.sweep(now)
	m, known := b.named(c.id)
	said := "done"
	switch {
	case !known:
		said = "unknown"
	case m.drains, c.ask == "resign" && (m.standby || m.resigned):
	case c.ask == "drain":
		b.asked[c.id] = request{c.ask, m.rank.gen, now}
		m.drains, m.resigned = true, false
		b.members[m.rank.gen] = m
		delete(b.trial, m.rank.gen)
		b.relieve(m.id)
		b.elect(now)
	default:
		free, resigned := b.others(m, now)
		if len(free)+len(resigned) == 0 {
			said = "alone"
			break
		}
		b.asked[c.id] = request{c.ask, m.rank.gen, now}
		m.resigned = true
		b.members[m.rank.gen] = m
		if len(free) == 0 {
			for _, o := range resigned {
				b.recall(o)
			}
		}
		b.elect(now)
	}
	if a.said != said {
		broken(5, "that %s should %s is answered %q; must be %q", c.id, c.ask, a.said, said)
	}
}

// others returns the other members that could lead and are not suspected: those that were not asked to resign, and those that were.
func (b *book) others(m member, now int64) (free, resigned []member) {
	for gen, o := range b.members {
		switch {
		case gen == m.rank.gen || !o.candidate(now) || b.suspected(o):
		case o.resigned:
			resigned = append(resigned, o)
		default:
			free = append(free, o)
		}
	}
	return free, resigned
}

// recall ends the resignation of a member.
func (b *book) recall(m member) {
	m.resigned = false
	b.members[m.rank.gen] = m
	delete(b.asked, m.id)
}

// checkAsked compares the requests.
func (b *book) checkAsked(w *world) {
	if n := len(w.disk[keys.Asked].fields); n != len(b.asked) {
		broken(5, "%d requests are kept; must be %v", n, b.asked)
	}
	for id, r := range b.asked {
		if got := w.disk.get(keys.Asked, id); got != fmt.Sprint(r.what, " ", r.gen, " ", r.at) {
			broken(5, "of %s is asked %q; must be %v", id, got, r)
		}
	}
}
