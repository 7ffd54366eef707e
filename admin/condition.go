package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Health is how a schedule is now. One place computes it, and every surface shows it.
type Health string

// The healths, the worst first.
const (
	Unhandled Health = "unhandled" // no instance handles its type
	Hung      Health = "hung"      // a run has lasted longer than the time between two slots, and longer than usual
	Failing   Health = "failing"   // the last run that ended was dead, or attempts fail again and again
	Overdue   Health = "overdue"   // a slot is due and does not run
	Missed    Health = "missed"    // slots were missed, and no run has ended well since
	Skipped   Health = "skipped"   // slots are skipped again and again behind runs that go on
	Stale     Health = "stale"     // no run has ended well for three times the time between two slots
	Retired   Health = "retired"   // a newer release does not declare it
	Paused    Health = "paused"
	Ended     Health = "ended"   // no slot comes any more
	Deleted   Health = "deleted" // it can be restored
	Well      Health = "well"
)

// Condition is how a schedule is now, since when, and why.
type Condition struct {
	Health Health `json:"health,omitempty"`
	// Since is when it became so, as far as that is known. It is zero for a schedule that is well.
	Since time.Time `json:"since,omitzero"`
	// Why is one line for a person.
	Why string `json:"why,omitempty"`
	// Success is when a run last ended well; zero if none is known. Usual is how long a run usually takes.
	Success time.Time `json:"last_success,omitzero"`
	Usual   string    `json:"usual,omitempty"`
	// HeldBy is the task whose run is hung, failed last, or goes on while a slot is overdue.
	HeldBy string `json:"held_by,omitempty"`
	// Skipped is how many slots were skipped behind a run since one ended.
	Skipped int64 `json:"skipped,omitempty"`
}

// Bad reports whether the schedule does not do what it says. One that a person paused or deleted, one that has ended, and one that is
// retired do.
func (h Health) Bad() bool {
	return !slices.Contains([]Health{Well, Paused, Ended, Deleted, Retired}, h)
}

// When a schedule is not well.
const (
	lateBy        = audit.Allowance  // a slot is overdue this long after it was due
	hungFrom      = 10 * time.Second // a run of a faster schedule may last this long
	hungRatio     = 2                // times the usual time
	failingFromAt = 3                // attempts in a row
	skippingFrom  = 3                // slots in a row
	staleFromGaps = 3
	mostLate      = 100       // tasks of a lane that are looked at
	turnWithin    = time.Hour // a slot waits this long for the limit of its type, or for the time between two slots
)

// scene is what is known of a namespace at one moment, to judge schedules by.
type scene struct {
	now     time.Time
	list    InstanceList
	held    []queue.Held
	running map[string]queue.Held // the longest run of each schedule
	limited map[string]bool       // the types that have a limit, and of which some run
	late    map[string]queue.Late // the oldest slot of each schedule that is due for lateBy and not claimed
	healths map[string]*producer.Health
	upTo    time.Time // zero, or when the healths are of; see [producer.Schedules.Healths]
}

// sceneOf reads a scene for some schedules.
func sceneOf(ctx context.Context, q *queue.Queue, s *producer.Schedules, n *instances, list []producer.Status) (*scene, error) {
	x := &scene{running: map[string]queue.Held{}}
	names, types := make([]string, len(list)), make([]string, len(list))
	for i := range list {
		names[i], types[i] = list[i].Schedule.Name, list[i].Schedule.Task
	}
	slices.Sort(types)
	var err error
	if x.list, err = n.registered(ctx); err != nil {
		return nil, err
	}
	if x.held, err = q.Running(ctx); err != nil {
		return nil, err
	}
	x.held = slices.DeleteFunc(x.held, func(h queue.Held) bool { // the claims of a lost instance are void
		return !slices.ContainsFunc(x.list.Items, func(i Instance) bool { return i.ID == h.Instance && i.LeaseLeftMS > 0 })
	})
	for _, h := range x.held {
		name := queue.ScheduleOf(h.ID)
		if name == "" || producer.IsBackfill(h.ID) { // these run behind all others, and hold none up
			continue
		}
		if was, ok := x.running[name]; !ok || h.At.Before(was.At) {
			x.running[name] = h
		}
	}
	if x.limited, err = q.Limited(ctx, slices.Compact(types)); err != nil {
		return nil, err
	}
	if x.healths, x.upTo, err = s.Healths(ctx, names); err != nil {
		return nil, err
	}
	if x.now, err = q.Now(ctx); err != nil { // last: nothing that was read is later
		return nil, err
	}
	x.late, err = lateOf(ctx, q, list, x.now.Add(-lateBy))
	return x, err
}

// lateOf finds slots that were due by a moment and wait in the lanes of their schedules. Behind very many tasks of others it may miss
// some: then tasks of the lane have waited for as long.
func lateOf(ctx context.Context, q *queue.Queue, list []producer.Status, by time.Time) (map[string]queue.Late, error) {
	seen := map[queue.Lane]bool{}
	var lanes []queue.Lane
	for i := range list {
		s := &list[i].Schedule
		l := queue.LaneOf(&task.Task{Queue: s.Queue, Priority: s.Priority, Type: s.Task})
		if !seen[l] {
			seen[l], lanes = true, append(lanes, l)
		}
	}
	tasks, err := q.Late(ctx, lanes, by, mostLate)
	late := map[string]queue.Late{}
	for _, t := range tasks {
		name := queue.ScheduleOf(t.ID)
		if name == "" || producer.IsBackfill(t.ID) { // those may wait for long
			continue
		}
		if was, ok := late[name]; !ok || t.Due.Before(was.Due) {
			late[name] = t
		}
	}
	return late, err
}

// couldNotAsk says of which time the healths are missing.
func (x *scene) couldNotAsk() []Unasked {
	if x.upTo.IsZero() {
		return nil
	}
	return []Unasked{{"the runs since " + x.upTo.UTC().Format(time.RFC3339), "no leader has noted how they went"}}
}

// judge says how a schedule is. The worst reason wins.
func (x *scene) judge(s *producer.Status) Condition {
	h := x.healths[s.Schedule.Name]
	if h == nil {
		h = &producer.Health{}
	}
	c := Condition{Health: Well, Success: h.Success, Skipped: h.Skipped}
	if h.Took > 0 {
		c.Usual = wording.Span(h.Took)
	}
	switch {
	case s.Retired != nil:
		c.Health, c.Since, c.Why = Retired, s.Retired.At, retiredBy(s.Retired.Release)
		return c
	case s.Deleted != nil:
		c.Health, c.Since = Deleted, s.Deleted.At
		if s.Deleted.By != "" {
			c.Why = "by " + s.Deleted.By
		}
		return c
	case s.Paused:
		c.Health, c.Since, c.Why = Paused, s.Changed(x.now), pausedWhy(s.Pause)
		if s.Pause != nil {
			c.Since = s.Pause.At
		}
		return c
	case s.Next.IsZero() && s.Last.IsZero():
		c.Health = Ended
		return c
	}
	grid, err := s.Grid()
	if err != nil {
		return c // a newer release wrote it
	}
	at := beat{x.now, grid, grid.Gap(x.now), s}
	reasons := []func(*Condition, beat, *producer.Health) bool{x.unhandled, x.hung, failing, x.overdue, missed, x.skipped, stale}
	if s.Next.IsZero() { // it has ended: only its last runs can be at fault
		reasons = reasons[1:3]
	}
	for _, f := range reasons {
		if f(&c, at, h) {
			return c
		}
	}
	if s.Next.IsZero() {
		c.Health = Ended
	}
	for _, u := range x.couldNotAsk() { // it may have failed since
		c.Why = "could not ask " + u.Source + ": " + u.Error
	}
	return c
}

// beat is a schedule at a moment, and the gap between its slots there.
type beat struct {
	now  time.Time
	grid schedule.Grid
	gap  time.Duration
	*producer.Status
}

func (x *scene) unhandled(c *Condition, at beat, h *producer.Health) bool {
	typ, queueName := at.Schedule.Task, at.Schedule.Queue
	if queueName == "" {
		queueName = task.DefaultQueue
	}
	alive := slices.ContainsFunc(x.list.Items, func(i Instance) bool { return i.LeaseLeftMS > 0 && i.State == "ready" })
	if !alive || x.list.Handles(queueName, typ) {
		return false // without an instance all of them wait, which is one line of its own
	}
	c.Health, c.Since = Unhandled, later(h.Ended, at.Anchor)
	c.Why = x.list.Unhandled(queueName, typ)
	return true
}

// Unhandled says why no instance takes tasks of a type in a queue, if [InstanceList.Handles] says so: none runs, none takes from the
// queue, or none handles the type, with the nearest type that one does handle.
func (l *InstanceList) Unhandled(queue, typ string) string {
	alive := slices.ContainsFunc(l.Items, func(i Instance) bool { return i.LeaseLeftMS > 0 })
	near := l.Nearest(typ)
	switch {
	case !alive:
		return "no instance runs"
	case near == typ:
		return fmt.Sprintf("no instance that handles %q takes tasks of the queue %q", typ, queue)
	case near != "":
		return fmt.Sprintf("no instance handles %q (%q is handled)", typ, near)
	}
	return fmt.Sprintf("no instance handles %q", typ)
}

// Nearest returns the type that an instance handles and that a name is probably meant to be, or "".
func (l *InstanceList) Nearest(typ string) string {
	var types []string
	for i := range l.Items {
		types = append(types, l.Items[i].Types...)
	}
	slices.Sort(types)
	return wording.Nearest(typ, slices.Compact(types))
}

func (x *scene) hung(c *Condition, at beat, h *producer.Health) bool {
	run, ok := x.running[at.Schedule.Name]
	lasts := x.now.Sub(run.At)
	if !ok || lasts <= max(at.gap, hungFrom, hungRatio*h.Took) {
		return false
	}
	c.Health, c.Since, c.HeldBy = Hung, run.At, run.ID
	c.Why = "a run has lasted " + wording.Span(lasts)
	if h.Took > 0 {
		c.Why += "; it usually takes " + wording.Span(h.Took)
	}
	if h.Skipped > 0 {
		c.Why += "; " + wording.Count(h.Skipped, "slot was", "slots were") + " skipped behind it"
	}
	return true
}

func failing(c *Condition, at beat, h *producer.Health) bool {
	switch {
	case h.Outcome == history.Dead:
		c.Why = "the last run failed for good"
		if h.Dead > 1 {
			c.Why = fmt.Sprintf("%d runs in a row failed for good", h.Dead)
		}
	case h.Failed >= failingFromAt:
		c.Why = fmt.Sprintf("%d attempts in a row failed", h.Failed)
	default:
		return false
	}
	c.Health, c.Since, c.HeldBy = Failing, h.Troubled, h.Task
	if dry := at.now.Sub(h.Success); !h.Success.IsZero() && at.gap > 0 && dry > at.gap { // a time says more than a count
		c.Why = fmt.Sprintf("no run has ended well for %s, one should every %s; %s", wording.Span(dry), schedule.FormatDuration(at.gap), c.Why)
	}
	if h.Error != "" {
		c.Why += ": " + h.Error
	}
	return true
}

// overdue reports whether a slot is due for a while and waits, also while earlier ones run, or was not pushed.
func (x *scene) overdue(c *Condition, at beat, h *producer.Health) bool {
	allowed := lateBy
	if x.limited[at.Schedule.Task] { // it waits for its turn
		allowed = max(lateBy, min(at.gap, turnWithin))
	}
	if t, ok := x.late[at.Schedule.Name]; ok && x.now.Sub(t.Due) > allowed {
		c.Health, c.Since, c.Why = Overdue, t.Due, "a slot waits"
		if _, slot, of := task.ParseSlotID(t.ID); of {
			c.Why = "the slot of " + slot.UTC().Format(time.RFC3339) + " waits"
		}
		if run, runs := x.running[at.Schedule.Name]; runs {
			c.HeldBy = run.ID
			c.Why += ", while earlier ones run"
		}
		return true
	}
	if _, runs := x.running[at.Schedule.Name]; runs {
		return false
	}
	first, heard := at.Anchor, h.Noted
	if changed := at.Changed(x.now); changed.Sub(at.Anchor) > time.Second { // else it was made then, with an immediate first run
		heard = later(heard, changed)
	}
	if !heard.Before(first) {
		first = at.grid.Next(heard)
	}
	if first.IsZero() || first.After(at.Came) {
		return false
	}
	due := at.Schedule.JitterFor(at.Schedule.Name, first)
	if at.Pushed.Before(first) {
		allowed = lateBy
	}
	if x.now.Sub(due) <= allowed {
		return false
	}
	c.Health, c.Since = Overdue, due
	c.Why = "the slot of " + first.UTC().Format(time.RFC3339) + " waits"
	if at.Pushed.Before(first) {
		c.Why = "the slot of " + first.UTC().Format(time.RFC3339) + " was not pushed"
	}
	return true
}

func missed(c *Condition, _ beat, h *producer.Health) bool {
	if h.Missed == 0 {
		return false
	}
	c.Health, c.Since = Missed, h.Troubled
	c.Why = wording.Count(h.Missed, "slot was", "slots were") + " missed, and no run has ended well since"
	return true
}

func (x *scene) skipped(c *Condition, at beat, h *producer.Health) bool {
	run, ok := x.running[at.Schedule.Name]
	if !ok || h.Skipped < skippingFrom {
		return false
	}
	c.Health, c.Since, c.HeldBy = Skipped, run.At, run.ID
	c.Why = wording.Count(h.Skipped, "slot was", "slots were") + " skipped behind a run that goes on"
	return true
}

func stale(c *Condition, at beat, h *producer.Health) bool {
	since := later(later(h.Success, at.Anchor), at.Changed(at.now))
	if at.gap == 0 || at.Schedule.MaxRuns > 0 || since.IsZero() {
		return false
	}
	if at.now.Sub(since) < staleFromGaps*at.gap+lateBy {
		return false
	}
	for third, n := since, 0; n < staleFromGaps; n++ { // at night and on Sundays no slot comes
		if third = at.grid.Next(third); third.IsZero() || at.now.Sub(third) < lateBy {
			return false
		}
	}
	c.Health, c.Since = Stale, h.Success
	c.Why = "no run has ended well for " + wording.Span(at.now.Sub(since)) + "; one should every " + schedule.FormatDuration(at.gap)
	if h.Success.IsZero() {
		c.Since, c.Why = since, "no run has ended well yet; one should every "+schedule.FormatDuration(at.gap)
	}
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// pausedWhy says who paused a schedule, and why; "" if neither is known.
func pausedWhy(p *producer.Pause) string {
	switch {
	case p == nil:
		return ""
	case p.By == "":
		return p.Reason
	case p.Reason == "":
		return "by " + p.By
	}
	return "by " + p.By + ": " + p.Reason
}

func retiredBy(release string) string {
	if release == "" {
		return "the release that leads does not declare it"
	}
	return "release " + release + " does not declare it"
}
