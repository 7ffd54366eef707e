package simulation

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// patience is how long the remaining work may take after the last planned step.
const patience = 3 * time.Minute

// tidyTime is how long the leader may take to remove what outlived its time.
const tidyTime = 31 * time.Second

// settle waits until no fault can be felt any more, stops the schedules, waits for the work, and looks at what is left over.
func (w *world) settle() {
	began := time.Now()
	for {
		var left time.Duration
		w.with(func() { left = time.Until(w.calm.Add(3 * time.Second)) })
		if left <= 0 {
			break
		}
		if time.Since(began) > time.Hour {
			w.with(func() { w.blame("error", "it did not become quiet within an hour: %s", w.why) })
			break
		}
		time.Sleep(left)
	}
	if w.plan.differ() {
		time.Sleep(grace)
	}
	w.with(func() {
		w.quiet, w.quietLead = time.Now(), w.leader()
		w.trace("quiet")
		for _, l := range w.book.schedules {
			if l.common && !l.anchor.IsZero() {
				l.edge(w.quiet.Add(w.redis.offset-2*time.Millisecond), w.quiet.Add(time.Hour), "quiet")
			}
			l.active = false
		}
		for _, d := range w.book.tasks {
			if d.state == dutyWaits && !w.served(d) {
				d.loose = "nobody handles it"
			}
		}
	})
	w.judgeInForce()
	ctx, done := context.WithTimeout(context.Background(), time.Hour)
	defer done()
	w.audit(ctx)
	schedules := w.schedules
	list, err := schedules.List(ctx)
	if err != nil {
		w.with(func() { w.blame("error", "list schedules when all is quiet: %v", err) })
	}
	for _, s := range list {
		if _, err := schedules.Pause(ctx, s.Schedule.Name, ""); err != nil && !errors.Is(err, task.ErrNotFound) {
			w.with(func() { w.blame("error", "pause %s when all is quiet: %v", s.Schedule.Name, err) })
		}
	}
	until := time.Now().Add(patience)
	for time.Now().Before(until) && w.busy() {
		time.Sleep(100 * time.Millisecond)
	}
	time.Sleep(w.plan.longestLease() + tidyTime)
	w.leftOver()
}

// busy reports whether a task runs, or one waits that a process could run.
func (w *world) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if len(n.running) > 0 && n.crashed.IsZero() {
			return true
		}
	}
	for _, d := range w.book.tasks {
		if d.state == dutyWaits && !d.known.IsZero() && w.served(d) && (d.loose == "" || d.behind) {
			return true
		}
	}
	return false
}

// served reports whether a process is there that reads the lane of a task, and may claim it. The caller holds mu.
func (w *world) served(d *duty) bool {
	lead := w.leader()
	for _, n := range w.nodes {
		if n.alive() && n.handles(d) && w.permitted(n, lead) {
			return true
		}
	}
	return false
}

// wasServed reports the same for the moment when all became quiet. When the judge works, all processes have left.
func (w *world) wasServed(d *duty) bool {
	for _, n := range w.nodes {
		if n.crashed.IsZero() && !n.stopping.Before(w.quiet) && n.handles(d) && w.permitted(n, w.quietLead) {
			return true
		}
	}
	return false
}

// leftOver looks at the keys of Redis when no task runs, and no task waits that could run.
func (w *world) leftOver() {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := queue.Partition{Namespace: namespace}.Keys()
	m := w.redis.mini
	fields := func(key string) []string {
		names, _ := m.HKeys(key)
		return names
	}
	members := func(key string) []string {
		names, _ := m.ZMembers(key)
		return names
	}
	if names := fields(keys.Active); len(names) > 0 {
		w.blame("left over", "limits still count %v", names)
	}
	for _, member := range members(keys.Held) {
		parts := strings.Split(member, "\x1f")
		if lane, err := queue.ParseLane(strings.TrimPrefix(parts[2], keys.Due(queue.Lane{})[:len(keys.Due(queue.Lane{}))-len(queue.Lane{}.String())])); err == nil {
			if d := (&duty{typ: lane.Type, queue: lane.Queue}); !w.served(d) {
				continue
			}
		}
		w.blame("left over", "a task still waits for its key: %q", member)
		break
	}
	if gens := members(keys.Orphans); len(gens) > 0 {
		w.blame("left over", "generations are still to be recovered: %v", gens)
	}
	for _, key := range m.Keys() {
		if !strings.Contains(key, "running:") {
			continue
		}
		if names := slices.DeleteFunc(fields(key), func(s string) bool { return s == "" }); len(names) > 0 {
			w.blame("left over", "%s still holds %v", key, names)
		}
	}
	live := members(keys.Instances)
	for _, member := range members(keys.Watch) {
		if id, _, _ := strings.Cut(member, "\x1f"); !slices.Contains(live, id) {
			w.blame("left over", "%s, which is gone, still watches", id)
		}
	}
	for _, key := range m.Keys() {
		lane, ok := strings.CutPrefix(key, keys.Due(queue.Lane{})[:len(keys.Due(queue.Lane{}))-len(queue.Lane{}.String())])
		if !ok {
			continue
		}
		l, err := queue.ParseLane(lane)
		if err != nil || !w.served(&duty{typ: l.Type, queue: l.Queue}) {
			continue
		}
		for _, id := range members(key) {
			score, _ := m.ZScore(key, id)
			if d := w.book.tasks[id]; int64(score) <= time.Now().Add(w.redis.offsetNow()).UnixMilli() && (d == nil || !d.forgiven) {
				w.blame("left over", "%s is due in lane %s, and nobody takes it", id, lane)
				break
			}
		}
	}
}

// audit compares onbeat's own audit with what the handlers saw.
func (w *world) audit(ctx context.Context) {
	auditor, err := audit.New(w.queue.Client(), w.queue.Namespace(), nil)
	var reports []audit.Report
	if err == nil {
		reports, err = auditor.Run(ctx, audit.Options{})
	}
	if err != nil {
		w.with(func() { w.blame("error", "audit: %v", err) })
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range reports {
		if l := w.book.schedules[r.Schedule]; l != nil && slices.ContainsFunc(l.duties, func(d *duty) bool { return d.forgiven }) {
			continue // Redis lost the writes by which the audit would know
		}
		for _, b := range r.Breaks {
			w.blame("audit", "%s: %+v", r.Schedule, b)
			break
		}
	}
}
