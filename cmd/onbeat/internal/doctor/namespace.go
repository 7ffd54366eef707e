package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

func (d *doctor) namespaceOverview(ctx context.Context) {
	seen := d.seen(ctx)
	if seen.err != nil {
		d.fail("namespace", "", "%v", seen.err)
		return
	}
	n, instances := &seen.counts, &seen.instances
	if d.isEmpty(ctx) {
		d.warn("namespace", d.emptyHint(ctx), "no instance ever ran in it, and no task or schedule was ever added")
	} else {
		overview := fmt.Sprintf("%s, %d due, %d running, %d dead, %d kept",
			wording.Count(n.Schedules, "schedule", "schedules"), n.Due+n.Held, n.Running, n.Dead, n.Done)
		d.ok("namespace", "%s; in total %d done, %d retries, %d died", overview, n.Finished, n.Retried, n.Died)
	}
	live, gone := living(instances.Items)
	since := instances.Leaderless()
	leader := instances.Leader()
	switch {
	case len(live) == 0 && len(gone) > 0:
		d.fail("instances", "start one: onbeat serve", "no instance is alive: the leases of %s have run out%s", some(gone), since)
	case len(instances.Items) == 0 && (n.Schedules > 0 || n.Due > 0):
		d.warn("instances", "start one: onbeat serve", "no instance runs, and there is work")
	case len(instances.Items) == 0:
		d.ok("instances", "no instance runs")
	case leader == nil:
		d.warn("instances", "all standby, or not ready yet? see onbeat instances", "%d, and none leads%s", len(live), since)
	default:
		d.ok("instances", "%d; %s of release %s leads", len(live), leader.ID, cmp.Or(leader.Release, "-"))
	}
	if _, err := d.admin.Schedules.List(ctx); err != nil {
		d.warn("schedules", "did a newer release write it? upgrade this one", "%v", err)
	}
}

// living returns the live instances, and the IDs of those whose lease has run out. The next heartbeat of a live instance removes
// the latter.
func living(instances []admin.Instance) (live []admin.Instance, gone []string) {
	for _, i := range instances {
		if i.LeaseLeftMS > 0 {
			live = append(live, i)
		} else {
			gone = append(gone, i.ID)
		}
	}
	return live, gone
}

// keysOverCaps looks for keys that have outgrown their caps.
func (d *doctor) keysOverCaps(ctx context.Context) {
	k := d.q.Keys()
	caps := d.cfg.caps()
	var over []string
	for _, c := range []struct {
		name   string
		length func() (int64, error)
		most   int
	}{
		{"events", d.node.XLen(ctx, k.Events).Result, caps.Events},
		{"history", d.node.XLen(ctx, k.History).Result, max(caps.History, caps.Archive)},
		{"runs", d.node.XLen(ctx, k.Runs).Result, max(caps.History, caps.Archive)},
		{"dead", d.node.ZCard(ctx, k.Dead).Result, caps.Dead}, {"done", d.node.ZCard(ctx, k.Done).Result, caps.Done},
	} {
		n, err := c.length()
		if errors.Is(store.Classify(err), task.ErrDenied) {
			d.warn("caps", "allow the user XLEN and ZCARD, to let the doctor see more", "%s: %v", c.name, err)
			return
		}
		if err != nil {
			d.fail("caps", d.cure(err, ""), "%s: %v", c.name, err)
			return
		}
		if n > int64(c.most)+int64(c.most)/10+1000 { // the leader trims only now and then, and approximately
			over = append(over, fmt.Sprintf("%s holds %d of %d", c.name, n, c.most))
		}
	}
	if makers, err := d.q.MakersOfLanes(ctx); err == nil {
		n := 0
		for _, made := range makers {
			n += made
		}
		if n >= queue.MostLanes*8/10 {
			d.warn("lanes", "use fewer queues and types, or give the token that makes them types (api.tokens): at the limit a task that needs a new lane is refused",
				"%d of %d lanes (queue, priority and type) are in use, %s", n, queue.MostLanes, queue.MostOf(makers))
		}
	}
	if len(over) > 0 {
		d.warn("caps", "does an instance lead? the leader trims them; or did you lower the caps?", "%s", strings.Join(over, ", "))
		return
	}
	d.ok("caps", "every key is within its cap")
}

const unhandledHint = "deploy a release that handles them, or let one take them (consume, queues, --allow-exec); or pause or delete their schedule, and cancel the tasks: onbeat tasks cancel --all --type TYPE"

// unhandled looks for work that no instance handles.
func (d *doctor) unhandled(ctx context.Context) {
	seen := d.seen(ctx)
	live, _ := living(seen.instances.Items)
	if seen.err != nil || len(live) == 0 {
		return // namespaceOverview reported it
	}
	var waiting []string
	for _, l := range seen.counts.Lanes {
		if l.Overdue > 0 && !seen.instances.Handles(l.Lane.Queue, l.Lane.Type) {
			waiting = append(waiting, fmt.Sprintf("%d of type %s in queue %s", l.Overdue, l.Lane.Type, l.Lane.Queue))
		}
	}
	if len(waiting) > 0 {
		d.warn("handlers", unhandledHint, "no instance handles these due tasks: %s", strings.Join(waiting, ", "))
		return
	}
	d.ok("handlers", "every due task has an instance that handles it")
}

// paused warns of a pause, during which no instance begins a task.
func (d *doctor) paused(ctx context.Context) {
	if l := &d.seen(ctx).instances; !l.PausedUntil.IsZero() {
		d.inPause = true
		d.warn("pause", "onbeat instances resume ends the pause", "no instance begins a task until %s (%s left)", l.PausedUntil.Format(time.RFC3339), wording.Span(l.PausedUntil.Sub(l.Now)))
	}
}

// lateness looks for tasks that wait too long for a worker. Tasks that no instance handles wait for another reason: see
// unhandled.
func (d *doctor) lateness(ctx context.Context) {
	seen := d.seen(ctx)
	if seen.err != nil {
		return // namespaceOverview reported it
	}
	n, instances := &seen.counts, &seen.instances
	live, _ := living(instances.Items)
	hint := "raise concurrency, or consume: release and more instances"
	switch {
	case d.moving:
		hint = "more workers do not help while the namespace's slot is being moved: see cluster"
	case d.inPause:
		hint = "no instance begins a task: see pause"
	case len(live) == 0:
		hint = "start an instance: onbeat serve"
	}
	var types []string
	for i := range n.Lanes {
		types = append(types, n.Lanes[i].Lane.Type)
	}
	limited, err := d.q.Limited(ctx, types)
	if err != nil {
		d.fail("lateness", "", "%v", err)
		return
	}
	var worst queue.LaneCount
	for _, l := range n.Lanes {
		handled := len(live) == 0 || instances.Handles(l.Lane.Queue, l.Lane.Type)
		if handled && l.Overdue > 0 && (worst.Head.IsZero() || l.Head.Before(worst.Head)) {
			worst = l
		}
	}
	if late := n.Now.Sub(worst.Head); !worst.Head.IsZero() && late > 10*time.Second {
		if limited[worst.Lane.Type] {
			hint = "as many tasks of this type run as its limit lets: raise it (limits), or make the tasks faster"
		}
		d.warn("lateness", hint, "the oldest due task (%s) has been waiting for %s", worst.Lane.Type, wording.Span(late))
		return
	}
	d.ok("lateness", "%d overdue", n.Overdue)
}

func (d *doctor) dead(ctx context.Context) {
	seen := d.seen(ctx)
	switch {
	case seen.err != nil:
	case seen.counts.Dead > 0:
		d.warn("dead", "onbeat tasks list --state dead, then retry or delete them", "%d tasks failed for good", seen.counts.Dead)
	default:
		d.ok("dead", "no dead tasks")
	}
}
