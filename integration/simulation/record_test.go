package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// end is how a run ended, as its process and the simulation saw it.
type end string

const (
	endGood      end = "done"
	endBad       end = "failed"
	endCancelled end = "cancelled"
	endDrained   end = "drained" // the task is handed back
	endLost      end = "lost"    // the lease was lost: the claim is void
	endCrashed   end = "crashed"
)

// run is one call of a handler.
type run struct {
	node    *node
	duty    *duty
	does    behaviour
	slot    time.Time
	attempt int
	fence   int64
	claimed time.Time // by the clock of Redis
	began   time.Time
	heardAt time.Time // its context ended
	cause   error
	ended   time.Time
	how     end
}

// until returns the last moment at which the run could act for its task, or zero while it still can.
func (r *run) until() time.Time {
	switch {
	case r.heardAt.IsZero():
		return r.ended
	case r.ended.IsZero() || r.heardAt.Before(r.ended):
		return r.heardAt
	}
	return r.ended
}

// begin notes that a handler was called, and makes the judgements that are possible at once.
func (w *world) begin(n *node, t *task.Task, does behaviour) *run {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	d := w.book.dutyOf(t)
	r := &run{node: n, duty: d, does: does, slot: t.Slot, attempt: t.Attempt, fence: t.Fence, claimed: t.Claimed, began: now}
	w.trace("%s: begin %s attempt %d", n.plan.Name, t.ID, t.Attempt)
	w.judgeBegin(r, now)
	w.measure(r, now)
	w.measurePassing(r, now)
	w.runs = append(w.runs, r)
	d.runs = append(d.runs, r)
	d.state, d.sibling = dutyRuns, false
	n.running[r] = struct{}{}
	if now.Sub(d.due) > 5*time.Millisecond {
		n.backlog = now
	}
	if len(n.running) >= n.plan.Concurrency {
		n.freeSince = time.Time{}
	}
	w.book.occupy(r, 1, now)
	if d.key != "" && d.line != nil && !d.behind {
		w.passSiblings(d, now)
	}
	return r
}

// passSiblings notes the other slots of a schedule that its policy may drop when one slot begins: slots that wait, unless
// they wait only for a run that is behind.
func (w *world) passSiblings(d *duty, now time.Time) {
	for _, o := range w.book.waiting {
		late := !o.due.After(now) || len(o.runs) > 0 || o.lost > 0
		held := o.held || o.loose != "" || len(o.runs) > 0 || now.Sub(o.due) < w.bound() || d.line.plan.Overlap == schedule.OverlapReplace
		if o == d || o.line != d.line || o.behind || o.state != dutyWaits || !late || !held {
			continue
		}
		o.sibling = true
		if o.loose == "" {
			o.loose = "overlap"
		}
	}
}

// measure measures the time from when a task could begin until it began. It does so only without a fault: the process that
// ran the task was allowed to all the while, and had a free worker.
func (w *world) measure(r *run, now time.Time) {
	d, n := r.duty, r.node
	from := later2(d.due, d.known)
	before := from.Add(-w.bound())
	free := func(since time.Time) bool { return !since.IsZero() && !since.After(before) }
	if len(d.runs) > 0 || d.loose != "" || d.known.IsZero() || w.calm.After(before) || !free(n.freeSince) || !free(n.ready) || !free(n.permitted) ||
		!w.hasRoom(now, d, now.Sub(before)) || !n.backlog.Before(before) {
		return
	}
	w.slowest = max(w.slowest, now.Sub(from))
}

// heard notes that the context of a run has ended.
func (w *world) heard(r *run, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.heardAt.IsZero() {
		r.heardAt, r.cause = time.Now(), cause
	}
}

// finish notes that a handler returned.
func (w *world) finish(r *run, ctx context.Context, err error) {
	cause := context.Cause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.ended.IsZero() {
		return
	}
	switch {
	case err == nil:
		w.over(r, endGood, nil)
	case errors.Is(cause, consumer.ErrDrained):
		w.over(r, endDrained, cause)
	case errors.Is(cause, consumer.ErrCancelled), errors.Is(cause, consumer.ErrReplaced):
		w.over(r, endCancelled, cause)
	case cause != nil && !errors.Is(cause, consumer.ErrTimeout):
		w.over(r, endLost, cause)
	default:
		w.over(r, endBad, err)
	}
}

// over ends a run, and decides what its task should do next. The caller holds mu.
func (w *world) over(r *run, how end, cause error) {
	now := time.Now()
	r.ended, r.how = now, how
	if r.cause == nil {
		r.cause = cause
	}
	w.trace("%s: end %s attempt %d: %s %v", r.node.plan.Name, r.duty.id, r.attempt, how, cause)
	n := r.node
	delete(n.running, r)
	if n.freeSince.IsZero() && len(n.running) < n.plan.Concurrency {
		n.freeSince = now
	}
	w.book.occupy(r, -1, now)
	w.book.next(r, now)
}
