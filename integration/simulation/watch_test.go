package simulation

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
)

// bound returns within what time a due task must begin if nothing failed, a worker is free, and its limits leave room. A plan
// with slow round trips has more time.
func (w *world) bound() time.Duration {
	return 50*time.Millisecond + 12*max(w.plan.Latency.d()-3*time.Millisecond, 0)
}

// every is how often the watch looks while a task that may begin waits.
const every = 10 * time.Millisecond

// watch looks at the world until ctx ends. It adds the slots that come due to the book, and blames processes that leave work
// undone.
func (w *world) watch(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(w.look())):
		}
	}
}

// leadership is what Redis says of the leader.
type leadership struct {
	id   string
	gen  string
	open bool
	node *node
}

func (w *world) leader() leadership {
	keys := queue.Partition{Namespace: namespace}.Keys()
	l := leadership{id: w.redis.mini.HGet(keys.Leader, "id"), gen: w.redis.mini.HGet(keys.Leader, "gen")}
	l.open = w.redis.mini.HGet(keys.Leader, "open") == "1"
	l.node = w.ids[l.id]
	return l
}

// look looks once, and returns when to look next.
func (w *world) look() time.Time {
	offset := w.redis.offsetNow()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.looks++
	pending := w.findAnchors()
	w.book.write(now, offset)
	w.book.prune()
	lead := w.leader()
	if n := lead.node; n != nil && lead.open {
		if n.led.from.IsZero() {
			n.led.from = now
		}
		n.led.to = now
	}
	w.watchManning(now)
	w.watchLeader(now, lead)
	idle := w.idle(now, lead)
	next := now.Add(50 * time.Millisecond)
	for _, d := range w.book.waiting {
		if d.loose != "" || d.known.IsZero() {
			continue
		}
		if d.due.After(now) {
			next = sooner(next, d.due)
			continue
		}
		next = sooner(next, now.Add(every))
		w.watchDuty(now, d, idle)
	}
	if pending {
		next = sooner(next, now.Add(every))
	}
	if at := w.book.nextSlot(offset); !at.IsZero() {
		next = sooner(next, later2(at, now.Add(time.Millisecond)))
	}
	return next
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// findAnchors reads the anchors of schedules that are new, and reports whether any is still to be found.
func (w *world) findAnchors() (pending bool) {
	keys := queue.Partition{Namespace: namespace}.Keys()
	for i := range w.plan.Schedules {
		name := w.plan.Schedules[i].Name
		if w.declaredByAll(name) {
			l := w.book.line(name)
			if !l.common && !l.seen {
				l.common, l.seen, l.rule = true, true, l.plan.rule(w.began)
			}
		}
	}
	for i := range w.plan.Schedules {
		l := w.book.line(w.plan.Schedules[i].Name)
		if l.common || !l.anchor.IsZero() && !l.stale || !w.declared(l.name) {
			continue
		}
		// Such a schedule comes and goes with its releases; its grid stays.
		if last, err := queue.ParseLast(w.redis.mini.HGet(keys.Last, l.name)); err == nil && !last.Anchor.IsZero() {
			l.anchor, l.stale, l.rule = last.Anchor, false, l.plan.rule(w.began)
			l.regrid(w)
		}
	}
	for _, l := range w.book.schedules {
		if !l.common || !l.anchor.IsZero() && !l.stale || l.unsure {
			continue
		}
		last, err := queue.ParseLast(w.redis.mini.HGet(keys.Last, l.name))
		if err != nil || last.Anchor.IsZero() {
			pending = true
			continue
		}
		if l.stale = false; last.Anchor.Equal(l.anchor) {
			continue
		}
		l.anchor = last.Anchor
		l.regrid(w)
		if l.paused = last.Paused; !l.paused {
			l.begin(last.Anchor)
		}
	}
	return pending
}

// declaredByAll reports whether every process declares a schedule.
func (w *world) declaredByAll(name string) bool {
	for i := range w.plan.Processes {
		if !slices.Contains(w.plan.Processes[i].Declares, name) {
			return false
		}
	}
	return true
}

// declared reports whether any process declares a schedule.
func (w *world) declared(name string) bool {
	return slices.ContainsFunc(w.plan.Processes, func(p process) bool { return slices.Contains(p.Declares, name) })
}

// watchManning notes the times without a candidate, because the policies for missed slots may apply to them.
func (w *world) watchManning(now time.Time) {
	manned := false
	for _, n := range w.nodes {
		manned = manned || n.canLead()
	}
	switch {
	case !manned && w.unmanned.IsZero():
		w.unmanned = now
	case manned && !w.unmanned.IsZero():
		w.closeGap(now)
	case manned:
		return
	}
	if !w.unmanned.IsZero() {
		w.disturb(now.Add(slack), "nobody was there")
		for _, d := range w.book.waiting {
			if d.line != nil && d.loose == "" && !d.behind && len(d.runs) == 0 {
				d.loose = "nobody was there"
			}
		}
	}
}

// gap is a time in which something was so.
type gap struct{ from, to time.Time }

// outage is a time without a candidate, up to when a process knew that it was ready. That process was elected at a moment from back on:
// slots before it were missed, slots from the end of the outage on were not.
type outage struct {
	gap
	back   time.Time
	offset time.Duration // of the clock of Redis at the end
}

// outageUntil returns the outage that ends now. A look comes a while after a process knew that it was ready.
func (w *world) outageUntil(now time.Time) outage {
	o := outage{gap: gap{w.unmanned, now}, back: now, offset: w.redis.offsetNow()}
	for _, n := range w.nodes {
		if !n.canLead() {
			continue
		}
		back := n.ready.Add(-w.bound())
		if n.registered.After(back) || now.Before(n.ill) { // the reply may have been on its way for long
			back = n.registered
		}
		o.to, o.back = sooner(o.to, later2(n.ready, w.unmanned)), sooner(o.back, later2(back, w.unmanned))
	}
	return o
}

func (w *world) closeGap(now time.Time) {
	w.gaps = append(w.gaps, w.outageUntil(now))
	offset := w.redis.offsetNow()
	for _, l := range w.book.schedules {
		l.edge(w.unmanned.Add(offset-slack), now.Add(offset+slack), "nobody was there")
	}
	w.unmanned = time.Time{}
}

// watchLeader blames a time without a leader, or with the gate shut, in which a process could lead.
func (w *world) watchLeader(now time.Time, lead leadership) {
	var since time.Time
	for _, n := range w.nodes {
		if at, fit := n.fit(); fit && !n.plan.Standby && (since.IsZero() || at.Before(since)) {
			since = at
		}
	}
	w.blameUnready(now)
	ok := lead.node != nil && lead.open && lead.node.crashed.IsZero() && lead.node.ended.IsZero()
	if ok || since.IsZero() || now.Sub(since) < w.bound() || now.Before(w.calm) {
		w.leaderless = time.Time{}
		return
	}
	if w.leaderless.IsZero() {
		w.leaderless = now
		return
	}
	if now.Sub(w.leaderless) > 2*w.bound() && !w.blamedLeader {
		w.blamedLeader = true
		w.blame("leaderless", "nobody has led for %v though somebody could (leader %q, open %v)", now.Sub(w.leaderless), lead.id, lead.open)
	}
}

// blameUnready blames a process that should be ready by now.
func (w *world) blameUnready(now time.Time) {
	for _, n := range w.nodes {
		if n.alive() && n.ready.IsZero() && n.thaw == nil && now.After(n.dueReady()) && now.After(w.calm) && now.After(n.ill) && !n.late &&
			!w.mayBeOnProbation(n) {
			n.late = true
			w.blame("unready", "%s is not ready %v after its start", n.plan.Name, now.Sub(n.started))
		}
	}
}

// mayBeOnProbation reports whether a process of the node's release was lost soon after its start.
func (w *world) mayBeOnProbation(n *node) bool {
	for _, o := range w.nodes {
		if o != n && o.plan.Release == n.plan.Release && (!o.crashed.IsZero() || !o.ill.IsZero()) {
			return true
		}
	}
	return !n.ill.IsZero()
}

// idle returns the nodes that could have claimed more for a while.
func (w *world) idle(now time.Time, lead leadership) []*node {
	var list []*node
	for _, n := range w.nodes {
		at, fit := n.fit()
		if !fit || !w.permitted(n, lead) {
			n.permitted = time.Time{}
			continue
		}
		if n.permitted.IsZero() {
			n.permitted = now
		}
		if n.freeSince.IsZero() {
			continue
		}
		if now.Sub(later2(later2(at, n.permitted), later2(n.freeSince, n.backlog))) >= w.bound() {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *node) int { return strings.Compare(a.plan.Name, b.plan.Name) })
	return list
}

// permitted reports whether the leader's rule lets a node claim.
func (w *world) permitted(n *node, lead leadership) bool {
	if lead.node == nil || !lead.open {
		return false
	}
	switch lead.node.plan.Consume {
	case instance.ConsumeAll:
		return true
	case instance.ConsumeRelease:
		return lead.node == n || lead.node.plan.Release == n.plan.Release && n.plan.Release != ""
	}
	return lead.node == n
}

// handles reports whether a node reads the lane in which a task waits.
func (n *node) handles(d *duty) bool {
	return slices.Contains(n.plan.Types, d.typ) && (len(n.plan.Queues) == 0 || n.plan.Queues[d.queue] > 0)
}

// hasRoom reports whether the limits have let the task begin for a while.
func (w *world) hasRoom(now time.Time, d *duty, for_ time.Duration) bool {
	return w.typeHasRoom(now, d, for_) && w.keyHasRoom(now, d, for_)
}

func (w *world) typeHasRoom(now time.Time, d *duty, for_ time.Duration) bool {
	limit, x := w.plan.Limits[d.typ], w.book.types[d.typ]
	return limit <= 0 || x == nil || x.runs < limit && now.Sub(x.since) >= for_
}

func (w *world) keyHasRoom(now time.Time, d *duty, for_ time.Duration) bool {
	x := w.book.keys[d.key]
	return d.key == "" || x == nil || x.runs < d.limit && now.Sub(x.since) >= for_
}

// watchDuty blames a due task that waits for no reason.
func (w *world) watchDuty(now time.Time, d *duty, idle []*node) {
	w.watchPassing(now, d)
	if x := w.book.keys[d.key]; d.line != nil && d.key != "" && !d.behind && len(d.runs) == 0 && x != nil &&
		(x.onTime > 0 || !d.looked && now.Sub(x.since) < w.bound()) {
		d.loose = "overlap" // another slot of the schedule runs, or did until just now: the policy may drop this one
		return
	}
	by := w.couldTake(now, d, idle)
	if !d.looked {
		d.looked, d.held = true, by == nil
		if w.waitsInLine(d) {
			return
		}
	}
	if !w.keyHasRoom(now, d, w.bound()) {
		by = nil
	}
	if by == nil || d.idle != by || d.idleLook != w.looks-1 {
		d.idle, d.idleSince = by, now
	}
	d.idleLook = w.looks
	if by != nil && now.Sub(d.idleSince) > w.bound() && !d.blamed {
		d.blamed = true
		w.blame("late", "%s waits, due %v ago, and %s could take it since %v", d, now.Sub(d.due), by.plan.Name, now.Sub(d.idleSince)+w.bound())
	}
}

// waitsInLine reports whether the slot waits for a run that is behind, so that its schedule's policy may drop it, or another
// slot for it.
func (w *world) waitsInLine(d *duty) bool {
	if x := w.book.keys[d.key]; d.line == nil || d.key == "" || d.behind || len(d.runs) > 0 || x == nil || x.runs == 0 {
		return false
	}
	for _, o := range w.book.waiting {
		if o == d || o.line != d.line || o.behind || o.state != dutyWaits || o.due.After(d.due) {
			continue
		}
		if d.line.plan.Overlap != schedule.OverlapReplace {
			d.loose = "overlap"
			return true
		}
		if o.loose == "" {
			o.loose = "overlap"
		}
	}
	return false
}

// couldTake returns a node that could take a task if its key had room, or nil.
func (w *world) couldTake(now time.Time, d *duty, idle []*node) *node {
	if now.Sub(w.calm) <= w.bound() || !w.typeHasRoom(now, d, w.bound()) {
		return nil
	}
	for _, n := range idle {
		if n.handles(d) {
			return n
		}
	}
	return nil
}

// offsetNow returns how far the clock of Redis is from the bubble's.
func (r *virtualRedis) offsetNow() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.offset
}
