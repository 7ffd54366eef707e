package simulation

import (
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// slack is how long a fault may be felt after its stated w.bound(): round trips, and the moment until a process looks.
const slack = 500 * time.Millisecond

// do carries out one step.
func (w *world) do(s *step) {
	if s.Process != "" {
		var n *node
		w.with(func() { n = w.nodes[s.Process] })
		if n != nil {
			w.doTo(n, s)
		}
		return
	}
	if what, ok := strings.CutSuffix(s.Do, " leader"); ok {
		var n *node
		w.with(func() { n = w.leader().node })
		if n != nil {
			to := *s
			to.Do = what
			w.doTo(n, &to)
		}
		return
	}
	switch s.Do {
	case "away", "rewind", "empty", "hang", "full", "flush scripts", "clock", "kick":
		w.doToRedis(s)
	default:
		w.call(s)
	}
}

// doTo carries out a step that one process feels.
func (w *world) doTo(n *node, s *step) {
	lease := w.plan.longestLease()
	now, d := time.Now(), s.For.d()
	var there bool
	w.with(func() { there = n.crashed.IsZero() && n.ended.IsZero() })
	if !there {
		return
	}
	var passes *passing
	ill := func(extra time.Duration) {
		w.with(func() {
			w.disturb(now.Add(d+lease+slack+extra), s.Do+" "+n.plan.Name)
			n.ill = later2(n.ill, now.Add(d+2*lease+slack+extra))
			n.woe(now.Add(d + slack + extra))
			w.book.risk(n, now)
		})
	}
	switch s.Do {
	case "stop":
		w.told(n, now)
		n.stop()
		w.awaitEnd(n)
	case "resign", "drain":
		w.request(n, s.Do)
	case "crash":
		w.with(func() {
			passes := w.passing(n, "crash", crashCosts, lease)
			w.disturb(now.Add(lease+slack), "crash "+n.plan.Name)
			w.pass = passes
			n.woe(now.Add(time.Hour))
			w.book.risk(n, now)
		})
		n.crash()
	case "freeze":
		w.with(func() { passes = w.passing(n, "freeze", freezeCosts, d+lease) })
		ill(0)
		w.with(func() { w.pass = passes })
		n.freeze(d)
		time.Sleep(d)
	case "cut":
		ill(2 * time.Second)
		w.with(func() { n.cut = true })
		n.link.set(func(l *link) {
			l.dropUp, l.dropDown = s.Name != "down", s.Name != "up"
			l.refuses = s.Name == "refuse"
		})
		time.Sleep(d)
		n.link.set(func(l *link) { l.dropUp, l.dropDown, l.refuses = false, false, false })
		w.with(func() { n.cut = false })
	case "break":
		ill(0)
		n.link.breakAll()
	case "slow":
		ill(0)
		n.link.set(func(l *link) { l.up, l.down = l.up+s.Back.d()/2, l.down+s.Back.d()/2 })
		time.Sleep(d)
		n.link.set(func(l *link) { l.up, l.down = l.up-s.Back.d()/2, l.down-s.Back.d()/2 })
	case "lie":
		w.with(func() { w.disturb(now.Add(lease/5+slack), "lie") })
		w.redis.lie(n.link, s.Name)
	case "unheard":
		w.with(func() {
			w.disturb(now.Add(d+lease/5+2*time.Second), "unheard "+n.plan.Name)
			n.woe(now.Add(d + lease/5 + 2*time.Second))
		})
		n.link.set(func(l *link) { l.unheard = true })
		w.redis.drop(func(c *conn) bool { return c.link == n.link && c.subscribed > 0 })
		time.Sleep(d)
		n.link.set(func(l *link) { l.unheard = false })
	case "deaf":
		w.with(func() {
			w.disturb(now.Add(d+lease/5+2*time.Second), "deaf "+n.plan.Name)
			n.woe(now.Add(d + lease/5 + 2*time.Second))
		})
		n.link.set(func(l *link) { l.deaf = true })
		time.Sleep(d)
		n.link.set(func(l *link) { l.deaf = false })
	default:
		w.t.Fatalf("plan %d: unknown step %q", w.plan.Seed, s.Do)
	}
}

// doToRedis carries out a step that all processes feel.
func (w *world) doToRedis(s *step) {
	lease := w.plan.longestLease()
	now, d := time.Now(), s.For.d()
	all := func(extra time.Duration, loses bool) {
		w.with(func() {
			w.disturb(now.Add(d+extra), s.Do)
			for _, n := range w.nodes {
				n.ill = later2(n.ill, now.Add(d+extra))
				w.book.risk(n, now)
			}
			from := now.Add(-s.Back.d() - lease)
			for _, l := range w.book.schedules {
				l.edge(from.Add(w.redis.offsetNow()), now.Add(d+extra).Add(w.redis.offsetNow()), s.Do)
			}
			if loses {
				w.forgive(now.Add(-s.Back.d()-slack), s.Do)
			}
		})
	}
	switch s.Do {
	case "away":
		all(2*lease+2*time.Second, false)
		w.redis.leave()
		time.Sleep(d)
		w.redis.comeBack()
	case "hang":
		all(2*lease+2*time.Second, false)
		w.redis.hang(true)
		time.Sleep(d)
		w.redis.hang(false)
	case "rewind":
		kept := w.redis.snapshot()
		time.Sleep(s.Back.d())
		w.undone(now)
		now = time.Now()
		all(3*lease+3*time.Second, true)
		w.redis.leave()
		w.redis.restore(kept)
		time.Sleep(d)
		w.redis.comeBack()
	case "empty":
		all(3*lease+3*time.Second, true)
		knew := w.leader().id
		w.undone(now.Add(-2 * lease)) // a leader that was frozen or deaf had not read the change
		w.redis.leave()
		w.redis.restore(nil)
		time.Sleep(d)
		w.redis.comeBack()
		w.madeAnew(knew)
	case "full":
		all(2*time.Second, false)
		w.redis.with(func() { w.redis.full = true })
		time.Sleep(d)
		w.redis.with(func() { w.redis.full = false })
	case "flush scripts":
		w.redis.flushScripts()
	case "kick":
		all(lease+slack, false)
		w.redis.drop(func(*conn) bool { return true })
	case "clock":
		all(max(s.Back.d(), -s.Back.d())+3*lease+3*time.Second, false)
		w.with(func() { w.forgive(now.Add(-slack), s.Do) })
		w.redis.with(func() { w.redis.offset += s.Back.d() })
	}
	w.with(func() { w.back = time.Now().Add(time.Second) })
}

// undone gives up judging schedules that a caller changed since a moment, because Redis forgets these changes.
func (w *world) undone(since time.Time) {
	w.with(func() {
		from := since.Add(w.redis.offsetNow() - slack)
		for _, l := range w.book.schedules {
			for _, e := range l.edges {
				if slices.Contains([]string{"apply", "change", "pause", "resume", "delete"}, e.why) && e.from.After(from) {
					l.unsure, l.active = true, false
				}
			}
		}
	})
}

// madeAnew makes the watch read the grids again if the first leader in an empty Redis is not the last one: a new leader does
// not know them, and declares its schedules anew.
func (w *world) madeAnew(knew string) {
	keys := queue.Partition{Namespace: namespace}.Keys()
	first := ""
	for range 10_000 {
		events, _ := w.redis.mini.Stream(keys.Events)
		for _, e := range events {
			if i := slices.Index(e.Values, "leader"); i > 0 && e.Values[i-1] == "event" {
				first = e.Values[slices.Index(e.Values, "instance")+1]
				break
			}
		}
		if first != "" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if first == knew {
		return
	}
	w.with(func() {
		for _, l := range w.book.schedules {
			l.stale = !l.anchor.IsZero()
		}
	})
}

// forgive notes that Redis may have lost its writes since a moment: runs may be repeated, and tasks gone.
func (w *world) forgive(since time.Time, why string) {
	w.lossy = append(w.lossy, since)
	for _, d := range w.book.tasks {
		open := d.state != dutyOver || d.goneAt.After(since)
		for _, r := range d.runs {
			open = open || r.ended.After(since) || r.began.After(since)
		}
		if open || d.known.After(since) {
			d.loose, d.state = why, dutyOver
			d.forgiven = true
		}
	}
}
