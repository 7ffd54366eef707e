package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/onbeat/onbeat/instance"
)

// The monitor looks in two ways. "look out" is its own call, with the evidence that the program demands. "suspect" demands
// none, as if all of it had been mistaken: the promises may not rest on it. So the search has suspicions, true and wrong, at
// any moment.

// The times that a monitor waits for (ms); see instance/look.go.
const (
	lookAlone  = int64(40)
	lookOwing  = int64(700)
	lookSilent = lease / 2
	lookLate   = int64(300)
	lookAfter  = int64(30)
	lookBusy   = int64(200)
	forgiven   = int64(600_000)
)

// suspect is what is noted of an instance: whether its channel had a listener at its last heartbeat, how often it was
// suspected wrongly, and when last; and since when it is suspected.
type suspect struct {
	gen       int64
	listens   bool
	wrong, at int64
	since     int64
}

// monitor is the candidate that looks whether the leader lives, and when it is to look again.
type monitor struct {
	id        string
	gen, next int64
}

// signs are the leader's signs of life: its term, its lease, its last cycle and its last push.
type signs struct{ gen, epoch, lease, seq, pushed int64 }

// moves reports whether a step pushed anything, or changed what its schedule has done.
func (b *book) moves(w *world, a answer, before disk) bool {
	changed := func(key string) bool { return w.disk.get(key, scheduleName) != before.get(key, scheduleName) }
	return !a.moved && (len(a.step.Push) > 0 || changed(keys.Last) || changed(keys.Behind))
}

func (b *book) signs() signs {
	return signs{b.leader, b.epoch, b.members[b.leader].lease, b.seqs[b.leader], b.pushed}
}

// looks adds the looks of an instance. It makes them whether or not it is the monitor by now.
func (m *menu) looks(i int, p *proc) {
	if p.leads == 0 || p.leads == p.gen {
		return
	}
	m.call(i, "look out", asks("look out"))
	m.call(i, "suspect", asks("suspect"))
}

// lookOut makes a look. With "suspect" every threshold is zero, and nobody listens but the caller.
func (w *world) lookOut(c call, a *answer) error {
	if c.op == "look out" {
		l, err := w.reg.Look(w.ctx, c.id, c.gen, c.leads, time.Duration(lease)*time.Millisecond, c.seen, time.Minute)
		a.look, a.view = l, &l.View
		return err
	}
	w.deaf = c.id
	defer func() { w.deaf = "" }()
	values, err := w.run("look", []string{keys.Running(c.leads)}, c.id, c.gen, c.leads, lease, "", 0, 0, 0,
		0, 0, 0, 0, lookLate, lookAfter, 100, lookBusy)
	if err != nil {
		return err
	}
	a.view = viewOf(values)
	a.look = instance.Look{Suspected: fmt.Sprint(values[11]) == "1", Monitor: fmt.Sprint(values[18]) != "0"}
	return nil
}

// hears is asked for each command, also for those of scripts. There are no subscriptions, and every instance that runs counts
// as a listener to its own channel.
func (w *world) hears(p *server.Peer, name string, args ...string) bool {
	switch name {
	case "PUBLISH":
		p.WriteInt(w.listeners(args[0]))
	case "PUBSUB":
		p.WriteLen(2)
		p.WriteBulk(args[1])
		p.WriteInt(w.listeners(args[1]))
	default:
		return false
	}
	return true
}

func (w *world) listeners(channel string) int {
	id, own := strings.CutPrefix(channel, keys.Wake+":")
	if !own || w.listens(id) {
		return 1
	}
	return 0
}

func (w *world) listens(id string) bool {
	if w.deaf != "" {
		return id == w.deaf
	}
	return slices.ContainsFunc(w.procs, func(p proc) bool { return p.id == id && p.phase != out })
}

// suspicion returns what is noted of a member.
func (b *book) suspicion(m member, now int64) suspect {
	s := b.suspects[m.id]
	if s.gen != m.rank.gen {
		return suspect{gen: m.rank.gen}
	}
	if s.at+forgiven <= now {
		s.wrong, s.at = 0, 0
	}
	return s
}

func (b *book) suspected(m member) bool {
	s := b.suspects[m.id]
	return s.gen == m.rank.gen && s.since > 0
}

// lives notes the heartbeat of a member, and reports whether it was suspected.
func (b *book) lives(w *world, m member) (wronged bool) {
	s, heard := b.suspicion(m, w.now), w.listens(m.id)
	if wronged = s.since > 0; wronged {
		s.wrong, s.at, s.since = s.wrong+1, w.now, 0
	}
	if wronged || s.listens != heard {
		s.listens = heard
		b.suspects[m.id] = s
	}
	return wronged
}

// mayLead reports whether a member could lead, now or after the last other candidate.
func (b *book) mayLead(m member) bool {
	_, on := b.trial[m.rank.gen]
	return !m.standby && !m.drains && (m.ready || on)
}

// judgePost: of the candidates that do not lead, one looks out. Another takes its place if it is late, or leads by now.
func (b *book) judgePost(w *world, m member, a answer) {
	mine := b.out.id == m.id && b.out.gen == m.rank.gen
	leads := b.members[b.leader].id
	free := b.out.id == "" || b.out.id == leads || b.out.next+lookLate < w.now || b.out.next > w.now+2*lease
	is := b.leader != 0 && b.leader != m.rank.gen && b.mayLead(m) && (mine || free && w.listens(m.id))
	if a.post != is {
		broken(5, "%s is told that it is the monitor: %v; must be %v: it was %v", m.id, a.post, is, b.out)
	}
	if is {
		wait := lookBusy
		if at, ok := first(w.disk); ok {
			wait = min(max(at+lookAfter-w.now, 0), lease)
		}
		b.out = monitor{m.id, m.rank.gen, w.now + min(wait, lease/5)}
	}
}

// first returns when the first watcher looks.
func first(d disk) (at int64, ok bool) {
	for _, f := range d[keys.Watch].fields {
		if !ok || int64(f.score) < at {
			at, ok = int64(f.score), true
		}
	}
	return at, ok
}

// owes returns when a member looks for due tasks, if it watches.
func owes(d disk, id string) (at int64, ok bool) {
	for _, f := range d[keys.Watch].fields {
		if who, _, _ := strings.Cut(f.name, "\x1f"); who == id && (!ok || int64(f.score) < at) {
			at, ok = int64(f.score), true
		}
	}
	return at, ok
}

// judgeLook: only the monitor suspects anybody, and only the leader, which showed no sign of life for long enough. Then another
// instance leads.
func (b *book) judgeLook(w *world, c call, a answer, before disk) {
	count := len(b.members)
	b.sweep(w.now)
	m, led := b.members[c.gen], b.members[b.leader]
	is := b.out.id == c.id && b.out.gen == c.gen && b.mayLead(m) && !b.suspected(m) && b.leader != 0 && b.leader != c.gen
	if b.seen = (signs{}); is {
		b.seen = b.signs()
	}
	known := b.leader == c.leads
	want := is && known && (c.op == "suspect" && b.doubted(led, w.now, before) || c.op == "look out" && b.silent(w, c, led, before))
	if a.look.Suspected != want && len(b.members) == count {
		broken(5, "%s suspects %s: %v; must be %v: the monitor is %v", c.id, led.id, a.look.Suspected, want, b.out)
	}
	if a.look.Suspected {
		if !is || !known {
			broken(5, "%s suspects %s; the monitor is %v", c.id, led.id, b.out)
		}
		s := b.suspicion(led, w.now)
		s.since = w.now
		b.suspects[led.id] = s
		b.elect(w.now)
		return
	}
	if a.look.Monitor != is {
		broken(5, "%s is the monitor: %v; must be %v", c.id, a.look.Monitor, b.out)
	}
	if is { // when it looks next is a matter of speed
		b.out.next = b.monitorOf(w.disk).next
		if b.out.next <= w.now || b.out.next > w.now+lease/5 {
			broken(5, "%s is to look in %d ms; it counts as late only after that", c.id, b.out.next-w.now)
		}
	}
}

// doubted reports whether a leader is suspected without evidence: if it watches, its look must be owed, or it must have been
// heard before.
func (b *book) doubted(led member, now int64, before disk) bool {
	at, watches := owes(before, led.id)
	return !watches || at <= now || b.suspicion(led, now).listens
}

// silent reports whether a leader has been silent for so long that it is suspected.
func (b *book) silent(w *world, c call, led member, before disk) bool {
	s := b.suspicion(led, w.now)
	same := b.seen == c.saw && w.now <= b.out.next+lookLate
	patience := func(ms int64) int64 { return min(ms<<s.wrong, lease) }
	since := w.now
	if same {
		since = c.seen.Since.UnixMilli()
	}
	silent := w.now - since
	at, watches := owes(before, led.id)
	alone := s.listens && !w.listens(led.id) && same && !c.seen.Alone.IsZero()
	return alone && w.now-c.seen.Alone.UnixMilli() >= patience(lookAlone) ||
		watches && at <= w.now && w.now-max(at, since) >= patience(lookOwing) ||
		!watches && silent >= patience(lookSilent)
}

func (b *book) monitorOf(d disk) (l monitor) {
	_, _ = fmt.Sscanf(d.get(keys.Leader, "monitor"), "%s %d %d", &l.id, &l.gen, &l.next)
	return l
}

// relieve ends a member's being the monitor.
func (b *book) relieve(id string) {
	if b.out.id == id {
		b.out = monitor{}
	}
}

// checkSuspects compares what is noted of instances, the monitor and the last push.
func (b *book) checkSuspects(w *world) {
	if n := len(w.disk[keys.Suspects].fields); n != len(b.suspects) {
		broken(5, "of %d instances something is noted; must be %v", n, b.suspects)
	}
	for id, s := range b.suspects {
		listens := 0
		if s.listens {
			listens = 1
		}
		if got := w.disk.get(keys.Suspects, id); got != fmt.Sprint(s.gen, listens, s.wrong, s.at, s.since) {
			broken(5, "of %s is noted %q; must be %v", id, got, s)
		}
	}
	if got := b.monitorOf(w.disk); got != b.out {
		broken(5, "the monitor is %v; must be %v", got, b.out)
	}
	if got := number(w.disk.get(keys.Leader, "sign")); got != b.pushed {
		broken(5, "the leader last pushed at %d; it was at %d", got, b.pushed)
	}
	if led, ok := b.members[b.leader]; ok && b.suspected(led) {
		for _, m := range b.members {
			if m.candidate(w.now) && !b.suspected(m) {
				broken(5, "%s is suspected and leads, and %s could", led.id, m.id)
			}
		}
	}
}
