package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/schedule"
)

// judgeBegin judges a run as it begins. The caller holds mu.
func (w *world) judgeBegin(r *run, now time.Time) {
	d := r.duty
	there := now.Add(w.redis.offsetNow())
	if !d.first.IsZero() && there.Before(d.first.Add(-time.Millisecond)) && !d.forgiven {
		w.blame("early", "%s begins %v before its time", d.id, d.first.Sub(there))
	}
	if d.gone != "" && now.After(d.goneAt) && !d.forgiven && !r.claimed.Before(d.goneAt.Add(w.redis.offsetNow())) {
		w.blame("undead", "%s runs on %s though it was %s at %v", d.id, r.node.plan.Name, d.gone, d.goneAt.Sub(w.began))
	}
	if d.line != nil && !r.slot.IsZero() && !d.line.anchor.IsZero() && !d.forgiven {
		w.judgeGrid(r)
	}
	w.judgeHolder(r, now)
	w.judgeLimits(r)
	w.noteOrder(r)
	w.judgeOrder(r)
	if !r.node.plan.isAllowed(d) {
		w.blame("unhandled", "%s runs on %s, which does not read it", d.id, r.node.plan.Name)
	}
}

func (p *process) isAllowed(d *duty) bool {
	return slices.Contains(p.Types, d.typ) && (len(p.Queues) == 0 || p.Queues[d.queue] > 0)
}

// judgeGrid: each slot lies on the grid of its schedule.
func (w *world) judgeGrid(r *run) {
	l := r.duty.line
	every := l.plan.Every.d()
	if every == 0 || l.unsure || l.stale || r.duty.behind || r.slot.Before(l.from) || len(l.edges) > 0 && l.onEdge(r.slot) != "" {
		return
	}
	if off := r.slot.Sub(l.anchor) % every; off != 0 {
		w.blame("off the grid", "%s is %v off the grid of %v from %v", r.duty.id, off, every, l.anchor)
	}
}

// judgeHolder: a task has one holder, and does not run again after it ended well.
func (w *world) judgeHolder(r *run, now time.Time) {
	for _, o := range r.duty.runs {
		if r.duty.forgiven {
			return
		}
		if o.fence >= r.fence {
			w.blame("fence", "%s runs under fence %d after %d", r.duty.id, r.fence, o.fence)
		}
		switch {
		case o.until().IsZero() && o.node.thaw != nil: // a frozen process does nothing, and its lease runs out meanwhile
		case o.until().IsZero():
			w.blame("doubled", "%s runs on %s while it still runs on %s", r.duty.id, r.node.plan.Name, o.node.plan.Name)
		case o.how == endGood && !r.duty.anew.IsZero() && o.ended.After(r.duty.anew):
		case o.how == endGood && o.heardAt.IsZero() && !w.mayRepeat(o):
			w.blame("doubled", "%s runs again on %s, and ended well on %s at %v", r.duty.id, r.node.plan.Name, o.node.plan.Name, o.ended.Sub(w.began))
		}
	}
	if n := max(r.duty.tries, r.duty.most); r.attempt > n && n > 0 && !r.duty.forgiven {
		w.blame("attempts", "%s runs for the %d. time of %d", r.duty.id, r.attempt, n)
	}
	if n := r.duty.spent(); r.attempt <= n && !r.duty.forgiven {
		w.blame("attempts", "%s runs as attempt %d, after %d runs that failed or were lost", r.duty.id, r.attempt, n)
	}
}

// spent is how many attempts the runs of a task have cost at least: a run that was handed back costs none, and one that was lost before
// it began costs one that no handler saw.
func (d *duty) spent() (n int) {
	for _, r := range d.runs {
		lost := r.ended.IsZero() && r.node.thaw != nil // another run begins while it is frozen
		if !r.began.Before(d.counted) && (lost || slices.Contains([]end{endBad, endLost, endCrashed}, r.how)) {
			n++
		}
	}
	return n
}

// mayRepeat reports whether something may have kept the end of a run from Redis.
func (w *world) mayRepeat(r *run) bool {
	n := r.node
	for _, at := range []time.Time{n.crashed, n.ill} {
		if !at.IsZero() && at.After(r.began) {
			return true
		}
	}
	return !n.stopping.IsZero() && r.ended.After(n.stopping.Add(n.plan.Drain.d())) // the drain gave up on it
}

// judgeLimits: no more tasks run than a limit allows. A run counts until it cannot act any more.
func (w *world) judgeLimits(r *run) {
	count := func(same func(*duty) bool) (n int) {
		for _, node := range w.nodes {
			if node.thaw != nil || !node.crashed.IsZero() {
				continue
			}
			for o := range node.running {
				if o.until().IsZero() && same(o.duty) && !o.duty.forgiven {
					n++
				}
			}
		}
		return n + 1
	}
	if limit := w.plan.Limits[r.duty.typ]; limit > 0 {
		if n := count(func(d *duty) bool { return d.typ == r.duty.typ }); n > limit {
			w.blame("limit", "%s: %d of type %s run, the limit is %d", r.duty.id, n, r.duty.typ, limit)
		}
	}
	if r.duty.key != "" && !r.duty.forgiven {
		if n := count(func(d *duty) bool { return d.key == r.duty.key }); n > r.duty.limit {
			w.blame("limit", "%s: %d of key %q run, the limit is %d", r.duty.id, n, r.duty.key, r.duty.limit)
		}
	}
}

// passed is a run that was claimed while a task that should have gone first waited.
type passed struct {
	by      *run
	claimed time.Time
	why     precedence
}

type precedence uint8

const (
	urgent  precedence = iota // the task that waited has a higher priority
	older                     // it is older, and of the same kind
	crowded                   // it is not of the schedule of the run, which may have had half of the workers
)

// mostSeen is how many tasks may wait so that a claim surely sees all of them.
const mostSeen = 200

// noteOrder notes the tasks that a run seems to have passed, and that the same process could have claimed first. Tasks of the
// same claim may still be on their way to their handlers.
func (w *world) noteOrder(r *run) {
	claimed := r.claimed.Add(-w.redis.offsetNow())
	if claimed.Before(w.calm.Add(w.bound())) || r.attempt > 1 {
		return
	}
	for _, o := range w.book.waiting {
		if o == r.duty || o.state != dutyWaits || o.loose != "" || o.queue != r.duty.queue || o.key != "" || len(o.runs) > 0 ||
			later2(o.due, o.known).After(claimed.Add(-20*time.Millisecond)) || !r.node.handles(o) || !w.hasRoom(claimed, o, 20*time.Millisecond) {
			continue
		}
		same := o.priority == r.duty.priority
		switch {
		case o.priority > r.duty.priority:
			o.passed = append(o.passed, passed{r, r.claimed, urgent})
		case same && o.typ == r.duty.typ && !r.duty.behind && !o.behind && o.due.Before(r.duty.due.Add(-20*time.Millisecond)):
			o.passed = append(o.passed, passed{r, r.claimed, older})
		}
		if same && r.duty.line != nil && r.duty.line != o.line && len(w.book.waiting) <= mostSeen {
			o.passed = append(o.passed, passed{r, r.claimed, crowded})
		}
	}
}

// judgeOrder blames a task that was passed, when it begins and shows that it was claimed later.
func (w *world) judgeOrder(r *run) {
	for _, p := range r.duty.passed {
		kind := "order"
		switch {
		case !r.claimed.After(p.claimed.Add(time.Millisecond)):
			continue
		case !w.hadRoom(r.duty.typ, p.claimed.Add(time.Millisecond)):
			continue // a task that was claimed before, and had not begun yet, had taken the last room of its type
		case p.why == older && p.by.node.isHalf(r.duty.line, p.claimed.Add(time.Millisecond), p.claimed.Add(-w.plan.Latency.d()-time.Millisecond), -w.redis.offsetNow()):
			continue // its schedule had half of the workers, so the other went first
		case p.why == crowded:
			if kind = "crowd"; !p.by.node.isHalf(p.by.duty.line, p.claimed.Add(-time.Millisecond), p.claimed, -w.redis.offsetNow()) {
				continue
			}
		}
		w.blame(kind, "%s was claimed at %v, before %s", p.by.duty.id, p.claimed.Add(-w.redis.offsetNow()).Sub(w.began), r.duty)
		break
	}
	r.duty.passed = nil
}

// hadRoom reports whether fewer runs of a type than its limit were claimed up to a moment by the clock of Redis, and had not ended by then.
func (w *world) hadRoom(typ string, at time.Time) bool {
	limit, count := w.plan.Limits[typ], 0
	for _, r := range w.runs {
		if r.duty.typ == typ && !r.claimed.After(at) && (r.ended.IsZero() || r.ended.Add(w.redis.offsetNow()).After(at)) {
			count++
		}
	}
	return limit <= 0 || count < limit
}

// isHalf reports whether runs of a schedule that were claimed before a moment, and ended after another, had half of the workers of a
// node. A call that claims was made a while before Redis took it, and knows what had ended by then. Both moments are by the clock of
// Redis; offset is the bubble's clock less that one.
func (n *node) isHalf(l *timeline, claimed, ended time.Time, offset time.Duration) bool {
	if l == nil || n.plan.Concurrency < 2 {
		return false
	}
	count := 0
	for _, d := range l.duties {
		for _, r := range d.runs {
			if r.node == n && r.claimed.Before(claimed) && (r.ended.IsZero() || r.ended.After(ended.Add(offset))) {
				count++
			}
		}
	}
	return count >= n.plan.Concurrency/2
}

// judge judges the whole run, when all processes have left.
func (w *world) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(mapKeys(w.book.tasks)) {
		w.judgeDuty(w.book.tasks[name])
	}
	for _, name := range slices.Sorted(mapKeys(w.book.schedules)) {
		l := w.book.schedules[name]
		if l.plan == nil || l.unsure {
			continue
		}
		w.judgeCount(l)
		for _, g := range w.gaps {
			w.judgeGap(l, g)
		}
	}
	w.judgeEffects()
	w.judgeLeadership()
	w.judgeStalls()
	w.judgeSuspicions()
}

// judgeDuty: each duty has run, unless its schedule's overlap policy dropped it.
func (w *world) judgeDuty(d *duty) {
	for _, r := range d.runs {
		if r.ended.IsZero() && r.node.crashed.IsZero() {
			w.blame("unended", "%s still runs on %s", d.id, r.node.plan.Name)
		}
	}
	w.judgeCancelled(d)
	if d.known.IsZero() || d.gone != "" || d.forgiven {
		return
	}
	if len(d.runs) > 0 {
		w.judgeOwed(d)
		return
	}
	if w.excused(d) {
		return
	}
	if !w.overlapped(d) {
		w.blame("missed", "%s never ran", d)
	}
}

// excused reports whether something explains that a task never ran.
func (w *world) excused(d *duty) bool {
	why := d.loose
	if d.line != nil && !d.behind && why == "" {
		why = d.line.onEdge(d.slot)
	}
	// Slot zero of a schedule that starts when it is made is not missed, even if no process was there a moment before.
	zero := d.line != nil && d.slot.Equal(d.line.anchor) && d.line.plan.Start == "" && d.line.plan.Cron == "" && !w.redisFailed()
	return why != "" && why != "overlap" && !(zero && why == "nobody was there")
}

// judgeOwed: a task that began and did not end well begins again, as long as it has attempts left.
func (w *world) judgeOwed(d *duty) {
	last := d.runs[len(d.runs)-1]
	fails := last.how == endBad || last.how == endLost || last.how == endCrashed
	owed := last.how == endDrained || fails && last.attempt < d.tries && d.lost < d.tries || d.revived.After(last.began) && d.loose == ""
	if owed && d.due.Before(w.quiet) && d.loose != "its attempts may be used up" && w.wasServed(d) && !w.overlapped(d) {
		w.blame("missed", "%s was to run again after attempt %d of %d, which %s on %s", d, last.attempt, d.tries, last.how, last.node.plan.Name)
	}
}

// judgeCancelled: the context of a run that a caller cancelled ends soon.
func (w *world) judgeCancelled(d *duty) {
	if d.gone != "cancelled (running)" {
		return
	}
	for _, r := range d.runs {
		if r.began.After(d.goneAt) || w.mayRepeat(r) || d.goneAt.Before(w.calm) {
			continue
		}
		by := d.goneAt.Add(w.plan.longestLease()/5 + slack)
		if r.ended.After(by) && (r.heardAt.IsZero() || r.heardAt.After(by)) {
			w.blame("cancel", "%s on %s was not told that it is cancelled", d.id, r.node.plan.Name)
		}
	}
}

// overlapped reports whether the overlap policy explains that a slot never ran: another run of its schedule went on.
func (w *world) overlapped(d *duty) bool {
	if d.line == nil || d.behind {
		return false
	}
	policy := d.line.plan.Overlap
	if policy == "" || policy == schedule.OverlapAllow {
		return false
	}
	if d.sibling {
		return true
	}
	from, to := d.due.Add(-20*time.Millisecond), d.due.Add(w.bound())
	if w.stormy(from.Add(-slack), to.Add(w.plan.longestLease()+slack)) {
		return true // a process may have claimed another task of the key, and gone before its run began
	}
	for _, o := range w.runs {
		if o.duty.line != d.line || o.duty.behind && policy != "" || o.duty == d {
			continue
		}
		end := o.ended
		if o.how == endCrashed || o.how == endLost {
			end = end.Add(w.plan.longestLease() + slack)
		}
		if o.began.Before(to) && end.After(from) {
			return true
		}
		// Another slot that waited: with "queue" and "replace" it was in the way of this one, or took its place.
		if o.duty.due.Before(to.Add(d.line.plan.Every.d())) && o.began.After(from) && o.began.Sub(o.duty.due) > w.bound() {
			return true
		}
	}
	return false
}

// stormy reports whether a fault could be felt in a time.
func (w *world) stormy(from, to time.Time) bool {
	return slices.ContainsFunc(w.storms, func(g gap) bool { return g.to.After(from) && g.from.Before(to) })
}

// judgeLeadership: if only the leader may work, no other process did.
func (w *world) judgeLeadership() {
	for i := range w.plan.Processes {
		if c := w.plan.Processes[i].Consume; c != "" && c != instance.ConsumeNewest {
			return
		}
	}
	// The runs are in the order in which they began. A process that another has followed claims nothing more, unless it leads
	// again.
	for i := 1; i < len(w.runs); i++ {
		a, b := w.runs[i-1], w.runs[i]
		if a.node != b.node && b.claimed.Before(a.claimed.Add(-time.Second)) && b.node.ill.IsZero() && !a.duty.forgiven && !b.duty.forgiven {
			w.blame("followed", "%s begins %s, claimed %v before %s took over", b.node.plan.Name, b.duty.id, a.claimed.Sub(b.claimed), a.node.plan.Name)
			return
		}
	}
}

func (w *world) verdict() verdict {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := verdict{
		faults: w.found, lines: w.lines, slots: w.book.slots, runs: len(w.runs), tasks: w.book.asked, steps: len(w.plan.Steps),
		virtual: time.Since(w.began), slowest: w.slowest, passes: w.passes,
	}
	return v
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func (v verdict) String() string {
	return fmt.Sprintf("%d slots, %d tasks, %d runs, %d steps in %v, %v", v.slots, v.tasks, v.runs, v.steps, v.virtual.Round(time.Second), v.passes)
}
