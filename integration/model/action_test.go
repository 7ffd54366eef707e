package model

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// action is one event that may happen next.
type action struct {
	name string
	do   func(w *world)
}

// luck says what happens to a call on its way.
type luck uint8

const (
	heard luck = iota
	lost       // Redis does it, and the reply is lost
	late       // it has not arrived when its caller stops waiting
)

// send makes a call of an instance, or delays it on the way.
func (w *world) send(i int, c call, l luck) {
	p := &w.procs[i]
	switch l {
	case heard:
		p.learn(c, w.do(c))
		if c.op == "look out" {
			p.saw = w.book.seen
		}
	case lost:
		w.do(c)
	case late:
		p.flight = &c
	}
	if l != heard && c.op == "cycle" {
		p.unsure, p.tried = true, c.settle // these runs have ended, whether or not Redis was told
		p.claims = slices.DeleteFunc(p.claims, func(x claim) bool { return slices.Contains(c.settle, x) })
	}
}

// menu collects the actions that a room allows in a moment.
type menu struct {
	*state
	room *room
	list []action
}

func (r *room) menu(s *state) []action {
	m := &menu{state: s, room: r}
	for i := range s.procs {
		m.instance(i)
	}
	m.tasks()
	m.promotes()
	m.asks()
	m.schedule()
	m.clock()
	return m.list
}

// add adds an action if the room allows its verb.
func (m *menu) add(verb, name string, do func(w *world)) {
	if m.room.has(verb) {
		m.list = append(m.list, action{name, do})
	}
}

// call adds a call of an instance. If the room allows it, call also adds the same call with a lost reply, and one that
// arrives late.
func (m *menu) call(i int, verb string, make func(p *proc) call) {
	p := &m.procs[i]
	for n, suffix := range []string{heard: "", lost: " lost", late: " late"} {
		l := luck(n)
		if l == late && p.flight != nil {
			continue
		}
		m.add(verb+suffix, fmt.Sprint(p.id, " ", verb, suffix), func(w *world) { w.send(i, make(&w.procs[i]), l) })
	}
}

func asks(op string) func(*proc) call { return func(p *proc) call { return p.call(op) } }

func (m *menu) instance(i int) {
	p := &m.procs[i]
	if p.flight != nil {
		m.list = append(m.list, action{fmt.Sprint(p.id, " ", p.flight.op, " arrives"), func(w *world) {
			c := w.procs[i].flight
			w.procs[i].flight = nil
			w.do(*c)
		}})
	}
	if p.phase == out {
		if m.book.joins < m.room.joins {
			m.call(i, "join", asks("join"))
		}
		return
	}
	m.add("crash", p.id+" crash", func(w *world) { w.procs[i].crash() })
	m.call(i, "beat", asks("beat"))
	switch p.phase {
	case joined:
		m.call(i, "ready", asks("ready"))
	case ready:
		m.call(i, "resign", asks("resign"))
		m.call(i, "quit", asks("leave"))
	case drained:
		m.call(i, "leave", asks("leave"))
	}
	m.leads(i, p)
	m.consumes(i, p)
	m.recovers(i, p)
	m.looks(i, p)
}

// leads adds the calls of an instance that believes that it leads.
func (m *menu) leads(i int, p *proc) {
	if p.epoch == 0 {
		return
	}
	m.call(i, "declare", asks("declare"))
	m.call(i, "stand down", asks("stand down"))
	m.call(i, "read", asks("read"))
	if p.may && p.read {
		m.call(i, "define", asks("define"))
	}
	if last, _ := queue.ParseLast(p.last); p.read && p.last != "" && !last.Paused {
		m.call(i, "advance", asks("advance"))
		m.call(i, "catchup", asks("catchup"))
		m.call(i, "put off", asks("put off"))
		if p.behind != "" {
			m.call(i, "repay", asks("repay"))
			m.call(i, "give up", asks("give up"))
		}
	}
	if p.caught || m.room.eager {
		m.call(i, "open", asks("open"))
	}
}

// consumes adds the calls of a consumer. After a lost reply the consumer first finds out which claims it holds.
func (m *menu) consumes(i int, p *proc) {
	if p.unsure {
		m.add("take", p.id+" makes sure", func(w *world) { w.makeSure(i) })
		return
	}
	m.call(i, "take", func(p *proc) call { return p.cycle(m.room.want, false, queue.Finished) })
	if len(p.tried) > 0 {
		m.call(i, "again", func(p *proc) call {
			c := p.cycle(0, false, queue.Finished)
			c.settle, p.tried = p.tried, nil
			return c
		})
	}
	if len(p.claims) == 0 {
		return
	}
	for _, verb := range []struct {
		name string
		o    queue.Outcome
	}{{"finish", queue.Finished}, {"keep", queue.Kept}, {"return", queue.Moved}, {"die", queue.Died}} {
		m.call(i, verb.name, func(p *proc) call { return p.cycle(m.room.want, true, verb.o) })
	}
	m.call(i, "settle", func(p *proc) call { return p.cycle(0, true, queue.Finished) })
	m.call(i, "hand back", func(p *proc) call { return p.cycle(0, true, queue.Moved) })
}

func (w *world) makeSure(i int) {
	p := &w.procs[i]
	c := p.cycle(0, false, queue.Finished)
	a := w.do(c)
	p.learn(c, a)
	if a.refused != done {
		return
	}
	held, _, err := w.q.Claims(w.ctx, p.gen, p.id)
	if err != nil {
		panic(fault{err.Error()})
	}
	p.unsure, p.claims = false, nil
	for _, h := range held {
		p.claims = append(p.claims, claim{h.Task.ID, h.Task.Fence, h.Task.Due.UnixMilli()})
	}
	slices.SortFunc(p.claims, func(a, b claim) int { return int(a.fence - b.fence) })
}

func (m *menu) recovers(i int, p *proc) {
	for _, gen := range p.orphans {
		m.call(i, "look", func(p *proc) call {
			c := p.call("look")
			c.orphan = gen
			return c
		})
	}
	if p.lost == 0 {
		return
	}
	for _, verb := range []string{"recover", "recover one"} {
		if verb == "recover one" && len(p.looked) < 2 {
			continue
		}
		m.call(i, verb, func(p *proc) call {
			c := p.call(verb)
			c.orphan, c.looked = p.lost, p.looked
			return c
		})
	}
}

// tasks adds a client's calls about tasks.
func (m *menu) tasks() {
	ask := func(op, id string) {
		m.add(op, op+" "+id, func(w *world) { w.do(call{op: op, task: id}) })
	}
	for _, id := range slices.Sorted(maps.Keys(m.room.tasks)) {
		ask("enqueue", id)
	}
	for _, id := range slices.Sorted(maps.Keys(m.book.tasks)) {
		ask("cancel", id)
		ask("forget", id)
		if m.book.tasks[id].place == dead || m.book.tasks[id].place == kept {
			ask("revive", id)
		}
	}
	ask("tidy", "")
}

// promotes adds promotions of releases that have a live instance, as a person asks for them.
func (m *menu) promotes() {
	live := map[string]bool{}
	for _, i := range m.book.members {
		live[i.release] = live[i.release] || i.lease > m.now
	}
	for _, release := range slices.Sorted(maps.Keys(live)) {
		if live[release] {
			m.add("promote", "promote "+release, func(w *world) { w.do(call{op: "promote", release: release}) })
		}
	}
}

// client adds the changes of a client that changes the schedule as it last read it.
type client struct {
	last, behind string
	read         bool
}

func (m *menu) schedule() {
	m.add("look at it", "the client reads", func(w *world) {
		a := w.do(call{op: "read"})
		w.client = client{a.last, a.behind, true}
	})
	if !m.client.read {
		return
	}
	last, _ := queue.ParseLast(m.client.last)
	may := map[string]bool{
		"make": m.client.last == "", "pause": !last.Paused && m.client.last != "", "resume": last.Paused,
		"delete": m.client.last != "", "alter": m.client.last != "", "retire": m.client.last != "",
		"restore": m.client.last == "" && m.disk.get(keys.Retired, scheduleName) != "",
	}
	for _, op := range slices.Sorted(maps.Keys(may)) {
		if may[op] {
			m.add(op, "the client "+op+"s", func(w *world) {
				w.do(call{op: op, last: w.client.last, behind: w.client.behind})
				w.client = client{}
			})
		}
	}
}

func (m *menu) clock() {
	next := m.next()
	m.add("tick", "tick", func(w *world) { w.tick(next) })
	if next-1 > m.now {
		m.add("brink", "tick to the brink", func(w *world) { w.tick(next - 1) })
	}
	m.add("moment", "a moment passes", func(w *world) { w.tick(w.now + 330) })
	m.add("minute", "a minute passes", func(w *world) { w.tick(w.now + grace) })
	m.add("hour", "an hour passes", func(w *world) { w.tick(w.now + time.Hour.Milliseconds() + 1) })
}
