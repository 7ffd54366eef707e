package simulation

import (
	"slices"
	"strings"
	"time"
)

// old is the age from which on the loss of a process costs the beat a lease each time. A release that is lost again and
// again soon after it was ready does not lead again at once, so a younger process costs less.
const old = 30 * time.Second

// judgeStalls: while one process is there all the time, and nothing else is wrong, the beat stops for no longer than the
// leases of the processes that were lost last.
func (w *world) judgeStalls() {
	if w.plan.load() > 2*time.Second {
		return // a late slot may have waited for a worker
	}
	lease := w.plan.longestLease()
	for _, name := range slices.Sorted(mapKeys(w.nodes)) {
		n := w.nodes[name]
		if n.plan.Standby || !n.crashed.IsZero() || !n.ill.IsZero() || n.ready.IsZero() && n.stopping.IsZero() || w.redisFailed() {
			continue
		}
		for _, line := range slices.Sorted(mapKeys(w.book.schedules)) {
			l := w.book.schedules[line]
			if !l.common || l.plan.MaxRuns > 0 || w.plan.Limits[l.plan.Type] > 0 || l.plan.Every.d() > time.Second || l.plan.Does.Takes.d() > time.Second ||
				!n.handles(&duty{typ: l.plan.Type, queue: queueName(l.plan.Queue)}) {
				continue
			}
			w.judgeStall(n, l, lease)
		}
	}
}

// load returns how long the tasks of callers may keep a process busy.
func (p *plan) load() (d time.Duration) {
	least := p.Processes[0].Concurrency
	for i := range p.Processes {
		least = min(least, p.Processes[i].Concurrency)
	}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Do == "enqueue" && s.Does != nil {
			d += time.Duration(s.N*max(s.Tries, 1)) * s.Does.Takes.d() / time.Duration(max(least, 1))
		}
	}
	return d
}

// redisFailed reports whether the plan has a fault of Redis. Other bounds hold for those.
func (w *world) redisFailed() bool {
	return slices.ContainsFunc(w.plan.Steps, func(s step) bool {
		return slices.Contains([]string{"away", "rewind", "empty", "hang", "full", "clock"}, s.Do)
	})
}

// judgeStall looks for slots of a schedule that begin far too late, or not at all, while a process was there.
func (w *world) judgeStall(n *node, l *timeline, lease time.Duration) {
	var since time.Time // the first of several slots in a row that did not begin in time
	for _, d := range l.duties {
		inTime := len(d.runs) > 0 && d.runs[0].began.Before(d.due.Add(slack)) || d.loose == "overlap" || l.onEdge(d.slot) != ""
		switch {
		case inTime || d.due.Before(n.dueReady()) || !n.stopping.IsZero() && d.due.After(n.stopping.Add(-time.Second)):
			since = time.Time{}
		case since.IsZero():
			since = d.due
		case w.losses(since, d.due, lease) > 1 && d.due.Sub(since) > w.costs(since, d.due, lease):
			w.blame("stalled", "%s has not run in time for %v while %s is there", l.name, d.due.Sub(since), n.plan.Name)
			return
		}
	}
}

// losses counts the processes that were lost around a time. Without a loss other bounds hold.
func (w *world) losses(from, to time.Time, lease time.Duration) (count int) {
	for _, n := range w.nodes {
		if !n.crashed.IsZero() && n.crashed.After(from.Add(-lease)) && n.crashed.Before(to) {
			count++
		}
	}
	return count
}

// costs returns how long the processes that were lost in a time may stop the beat.
func (w *world) costs(from, to time.Time, lease time.Duration) time.Duration {
	young, others := 0, 0
	for _, n := range w.nodes {
		if n.crashed.IsZero() || n.crashed.Before(from.Add(-lease)) || n.crashed.After(to) {
			continue
		}
		if n.crashed.Sub(n.started) < old {
			young++
		} else {
			others++
		}
	}
	return time.Duration(1+others+min(young, 2))*(lease+lease/5) + 2*time.Second
}

// orders returns when each release was first seen after being absent: the later, the newer. A lost release is not absent.
func (w *world) orders() map[string]time.Time {
	type event struct {
		at      time.Time
		release string
		change  int // of its processes
		lost    bool
	}
	var events []event
	for _, n := range w.nodes {
		events = append(events, event{at: n.started, release: n.plan.Release, change: 1})
		switch {
		case !n.crashed.IsZero():
			events = append(events, event{n.crashed.Add(n.plan.Lease.d()), n.plan.Release, -1, true})
		case !n.stopping.IsZero(): // a draining process counts as gone
			events = append(events, event{n.stopping, n.plan.Release, -1, false})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return a.at.Compare(b.at) })
	orders, counts := map[string]time.Time{}, map[string]int{}
	for _, e := range events {
		counts[e.release] += e.change
		switch {
		case e.change > 0 && orders[e.release].IsZero():
			orders[e.release] = e.at
		case e.change < 0 && counts[e.release] == 0 && !e.lost:
			delete(orders, e.release)
		}
	}
	return orders
}

// newest returns a process of the newest release that is present, or nil. A standby never leads, but its release is present, and keeps its
// schedules in force if another process of the release declared them. If it is not clear whether one did, newest returns nil. The caller
// holds mu.
func (w *world) newest() *node {
	orders := w.orders()
	var best *node
	for _, standby := range []bool{false, true} {
		for _, name := range slices.Sorted(mapKeys(w.nodes)) {
			n := w.nodes[name]
			if n.plan.Standby != standby || !standby && !n.canLead() || standby && !n.alive() ||
				best != nil && !orders[n.plan.Release].After(orders[best.plan.Release]) {
				continue
			}
			switch led := w.led(n.plan.Release, orders[n.plan.Release]); {
			case standby && led == 0:
			case standby && led < slack:
				return nil
			default:
				best = n
			}
		}
		if best == nil { // nobody can lead
			return nil
		}
	}
	return best
}

// led returns the longest time for which a process of a release, of those that started since a moment, may have led: at least a nanosecond
// if it was seen to.
func (w *world) led(release string, since time.Time) (longest time.Duration) {
	for _, n := range w.nodes {
		if n.plan.Release == release && !n.started.Before(since) && !n.led.from.IsZero() {
			longest = max(longest, n.led.to.Sub(n.led.from), 1)
		}
	}
	return longest
}

// grace is how long a lost release counts as present, and a little more.
const grace = time.Minute + 5*time.Second

// differ reports whether the releases of a plan declare different schedules.
func (p *plan) differ() bool {
	return slices.ContainsFunc(p.Processes, func(x process) bool {
		return strings.Join(x.Declares, " ") != strings.Join(p.Processes[0].Declares, " ")
	})
}

// judgeInForce: the schedules in force are those of the newest release that is there. It looks at what ran in the last
// moments before all was quiet.
func (w *world) judgeInForce() {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.newest()
	if n == nil || !w.plan.differ() || w.redisFailed() {
		return
	}
	from := time.Now().Add(-3 * time.Second)
	for _, name := range slices.Sorted(mapKeys(w.book.schedules)) {
		l := w.book.schedules[name]
		if l.common || l.paused || l.plan == nil || l.plan.Every == 0 || l.plan.Every.d() > time.Second || l.plan.Does.Takes.d() > time.Second ||
			l.plan.MaxRuns > 0 || l.plan.Until > 0 || !w.declared(name) {
			continue
		}
		ran := slices.ContainsFunc(w.runs, func(r *run) bool {
			return r.duty.line == l && !r.duty.behind && r.slot.Add(-w.redis.offsetNow()).After(from)
		})
		switch wanted := slices.Contains(n.plan.Declares, name); {
		case wanted && !ran && w.served(&duty{typ: l.plan.Type, queue: queueName(l.plan.Queue)}):
			w.blame("in force", "%s is declared by %s, of the newest release that is there, and does not run", name, n.plan.Name)
		case !wanted && ran:
			w.blame("in force", "%s runs, and the newest release that is there, %s, does not declare it", name, n.plan.Release)
		}
	}
}
