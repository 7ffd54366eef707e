package simulation

import (
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// The costs of a leader that is lost, while another process could lead: for so long a task that is due meanwhile may wait.
// A process that was taken for dead wrongly is trusted for longer the next time.
const (
	crashCosts  = 250 * time.Millisecond
	freezeCosts = 1500 * time.Millisecond
)

// passing is the time in which the lead passes from a process that was lost to another.
type passing struct {
	from   *node
	lost   string // crash or freeze
	began  time.Time
	until  time.Time
	within time.Duration
}

// passing returns the time in which the lead passes from a node, which is lost now. It returns nil if the node does not lead,
// if another fault may be felt, or if no process is there that could take its place. The caller holds mu.
func (w *world) passing(n *node, lost string, within, lasts time.Duration) *passing {
	now := time.Now()
	lead := w.leader()
	if lead.node != n || !lead.open || !now.After(w.calm.Add(w.bound())) || len(n.woes) > 0 {
		return nil
	}
	others := 0
	for _, o := range w.nodes {
		if o == n || !o.crashed.IsZero() || !o.ended.IsZero() || o.plan.Standby {
			continue
		}
		at, fit := o.fit()
		if !fit || now.Sub(at) < settled+o.plan.Lease.d()/5 {
			return nil
		}
		others++
	}
	if others == 0 {
		return nil
	}
	return &passing{from: n, lost: lost, began: now, until: now.Add(lasts), within: within + 2*w.bound()}
}

// settled is how long a process must have been ready before the others can count on it to see that the leader is lost. It
// trusts what it hears of others only a second after it was connected.
const settled = 1500 * time.Millisecond

// watchPassing blames a due task that waits for too long because the leader was lost. It looks at tasks that any process
// could run, and that the lost one cannot have claimed.
func (w *world) watchPassing(now time.Time, d *duty) {
	if p := w.pass; !d.blamed && w.waitsForLead(now, d) && now.Sub(later2(d.due, d.known)) > p.within {
		d.blamed = true
		w.blame("passed on", "%s waits, due %v ago: %s was lost %v ago (%s), and nobody took its place in time", d,
			now.Sub(d.due), p.from.plan.Name, now.Sub(p.began), p.lost)
	}
}

// waitsForLead reports whether a task waits for nothing but a leader: any process could run it.
func (w *world) waitsForLead(now time.Time, d *duty) bool {
	p, from := w.pass, later2(d.due, d.known)
	if p == nil || now.After(p.until) || d.loose != "" || d.lost > 0 || len(d.runs) > 0 || d.key != "" || d.known.IsZero() ||
		w.plan.Limits[d.typ] > 0 || from.Before(p.began.Add(50*time.Millisecond)) {
		return false
	}
	for _, n := range w.nodes {
		if n == p.from || !n.crashed.IsZero() || !n.ended.IsZero() {
			continue
		}
		if !n.handles(d) || n.freeSince.IsZero() || n.freeSince.After(from) || n.backlog.After(from) {
			return false
		}
	}
	return true
}

// measurePassing measures how long a task waited that fell due while the lead passed on.
func (w *world) measurePassing(r *run, now time.Time) {
	if !w.waitsForLead(now, r.duty) {
		return
	}
	if w.passes == nil {
		w.passes = map[string]time.Duration{}
	}
	w.passes[w.pass.lost] = max(w.passes[w.pass.lost], now.Sub(later2(r.duty.due, r.duty.known)))
}

// woe notes that others may take the node for dead until a moment. The caller holds the world's mu.
func (n *node) woe(until time.Time) { n.woes = append(n.woes, gap{time.Now(), until}) }

// mostSuspicions is how often one fault may make others suspect a process: each time it was wrong, the process is trusted for
// twice as long.
const mostSuspicions = 8

// judgeSuspicions: nobody is suspected with whom nothing is wrong, and nobody again and again.
func (w *world) judgeSuspicions() {
	if w.redisFailed() {
		return
	}
	counts := map[*node]int{}
	events, _ := w.redis.mini.Stream(queue.Partition{Namespace: namespace}.Keys().Events)
	for _, e := range events {
		if value(e.Values, "event") != "suspected" {
			continue
		}
		n, at := w.ids[value(e.Values, "instance")], timeOf(e.ID)
		if n == nil {
			continue
		}
		counts[n]++
		if !slices.ContainsFunc(n.woes, func(g gap) bool { return !at.Before(g.from.Add(-time.Millisecond)) && at.Before(g.to) }) {
			w.blame("suspected", "%s was suspected at %v (%s), and nothing was wrong with it", n.plan.Name, at.Sub(w.began), value(e.Values, "reason"))
		}
	}
	for n, count := range counts {
		if count > mostSuspicions*len(n.woes) {
			w.blame("suspected", "%s was suspected %d times, and had %d faults", n.plan.Name, count, len(n.woes))
		}
	}
}

// value returns the value of a field of an event.
func value(values []string, field string) string {
	for i := 0; i+1 < len(values); i += 2 {
		if values[i] == field {
			return values[i+1]
		}
	}
	return ""
}
