package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// When something needs a look.
const (
	waitsTooLong  = time.Minute
	idleFor       = 30 * time.Second
	pausedTooLong = 24 * time.Hour
	lately        = 24 * time.Hour
	nearlyFull    = 0.8
	keyForgotten  = 15 * time.Minute // an instance says it again each ten
	longestRuns   = 3                // of those that hold the workers, by name
	mostCauses    = 3                // of dead tasks
)

// mayWork are the instances that may take tasks now.
func (v *view) mayWork() []Instance {
	return slices.DeleteFunc(slices.Clone(v.list.Items), func(i Instance) bool {
		return i.State != "ready" || i.LeaseLeftMS <= 0 || !slices.ContainsFunc(i.Types, func(typ string) bool {
			return v.list.handledBy(&i, "", typ)
		})
	})
}

func (v *view) lookAtInstances() {
	lead := v.list.Leader()
	alive := slices.ContainsFunc(v.list.Items, func(i Instance) bool { return i.LeaseLeftMS > 0 })
	switch {
	case !alive:
		v.add(Trouble{Kind: NoLeader, Since: v.list.LeaderlessSince, Text: "no instance runs: nothing is scheduled, and no task begins", Show: "onbeat instances"})
		if v.Counts.Schedules == 0 && v.list.LeaderlessSince.IsZero() {
			v.Trouble[0].Text += "; is this the right namespace?"
		}
	case lead == nil:
		v.add(Trouble{Kind: NoLeader, Since: v.list.LeaderlessSince, Text: "no instance leads: nothing is scheduled, and no task begins", Show: "onbeat instances"})
	default:
		v.Leader, v.Release = lead.ID, lead.Release
	}
	if !v.list.PausedUntil.IsZero() {
		v.add(Trouble{Warning: true, Kind: string(Paused), Text: allPaused(v.list.PausedUntil, "", v.list.PauseReason), Show: "onbeat instances resume"})
	}
	for _, i := range v.list.Items {
		switch left := i.ProbationLeft(); {
		case i.Suspected:
			v.add(Trouble{Warning: true, Kind: InstanceIdle, Name: i.ID, Text: "is suspected: it showed no sign of life while it led", Show: "onbeat instances"})
		case left > 0:
			v.add(Trouble{Warning: true, Kind: InstanceIdle, Name: i.ID, Text: "is on probation for " + wording.Span(left) + " more: its release was lost soon after it became ready", Show: "onbeat instances"})
		}
	}
	v.working = v.mayWork()
	for _, i := range v.working {
		v.Counts.Instances++
		v.Counts.Workers += i.Concurrency
	}
}

func (v *view) lookAtSchedules(list []producer.Status) {
	var unpushed time.Time
	for i := range list {
		s := &list[i]
		c := v.judge(s)
		line := Trouble{Warning: !c.Health.Bad(), Kind: string(c.Health), Name: s.Schedule.Name, Since: c.Since, Text: c.Why, Show: "onbeat schedules show " + s.Schedule.Name, ofSchedule: true}
		if c.Health.Bad() {
			v.Counts.Bad++
		}
		if s.Behind > 0 && s.Retired == nil { // a schedule has one line, of its worst reason
			behind := "behind with " + wording.Count(s.Behind, "slot", "slots") + " that were missed, and are still to run"
			if c.Health.Bad() {
				line.Text += "; " + behind
			} else {
				missed := line
				missed.Kind, missed.Warning, missed.Since, missed.Text = string(Missed), true, time.Time{}, behind
				v.add(missed)
			}
		}
		if first := firstUnpushed(s, v.now); !first.IsZero() && (unpushed.IsZero() || first.Before(unpushed)) {
			unpushed = first
		}
		switch {
		case c.Health == Well || c.Health == Ended:
			v.Counts.Well++
			continue
		case c.Health == Paused:
			if c.Since.IsZero() || v.now.Sub(c.Since) < pausedTooLong {
				continue
			}
			line.Text, line.Show = strings.TrimSpace("paused for more than a day "+c.Why), "onbeat schedules resume "+s.Schedule.Name
		case c.Health == Unhandled:
			line.typ = s.Schedule.Task
		case c.Health == Hung:
			line.Show = "onbeat tasks show " + c.HeldBy
		case c.Health == Overdue:
			line.busy = c.HeldBy != ""
		}
		v.add(line)
	}
	goesOn := slices.ContainsFunc(list, func(s producer.Status) bool { return s.Pushed.After(unpushed.Add(lateBy)) })
	if !unpushed.IsZero() && !goesOn && v.Leader != "" {
		v.add(Trouble{Kind: LeaderIdle, Name: v.Leader, Since: unpushed, Text: "the leader pushes no slots", Show: "onbeat events"})
	}
}

// firstUnpushed returns the first slot that has come and that nobody has dealt with, once that is a while ago. The leader may have set
// aside that one schedule: it pushes nothing if no other schedule is further.
func firstUnpushed(s *producer.Status, now time.Time) time.Time {
	if s.Paused || s.Retired != nil || s.Pushed.IsZero() || !s.Pushed.Before(s.Came) {
		return time.Time{}
	}
	g, err := s.Grid()
	if err != nil {
		return time.Time{}
	}
	first := g.Next(s.Pushed)
	if first.IsZero() || now.Sub(first) < lateBy {
		return time.Time{}
	}
	return first
}

// typesOf returns the types of the tasks that are due.
func typesOf(n *queue.Counts) []string {
	var types []string
	for i := range n.Lanes {
		if n.Lanes[i].Overdue > 0 {
			types = append(types, n.Lanes[i].Lane.Type)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// lookAtWork looks at the tasks that wait, and at who should run them. Limited are the types of which as many run as may.
func (v *view) lookAtWork(n *queue.Counts, limited map[string]bool) {
	var oldest time.Time
	may := v.mayWork()
	idle := map[string]time.Time{}
	told := map[string]bool{} // the types of which a schedule's line tells
	for _, l := range v.Trouble {
		told[l.typ] = true
	}
	if slices.ContainsFunc(v.held, func(h queue.Held) bool { return strings.HasPrefix(h.ID, task.BulkType+":") }) {
		limited[task.BulkType] = true // one at a time
	}
	for i := range n.Lanes {
		l := &n.Lanes[i]
		late := v.now.Sub(l.Head)
		if l.Overdue == 0 || l.Head.IsZero() || late < 0 {
			continue
		}
		name := l.Lane.Type
		if len(may) > 0 && !v.list.Handles(l.Lane.Queue, name) {
			if told[name] {
				continue
			}
			text := fmt.Sprintf("%s in the queue %s: %s", wording.Count(l.Overdue, "task waits", "tasks wait"), l.Lane.Queue, v.list.Unhandled(l.Lane.Queue, name))
			v.add(Trouble{Kind: string(Unhandled), Name: name, Since: l.Head, Text: text, Show: "onbeat tasks list --state waiting --type " + name})
			continue
		}
		if own := strings.HasPrefix(name, task.Own); !own && (oldest.IsZero() || l.Head.Before(oldest)) {
			oldest = l.Head
		}
		if late > waitsTooLong && len(may) > 0 {
			text := wording.Count(l.Overdue, "task waits", "tasks wait") + " in the queue " + l.Lane.Queue
			if limited[name] {
				text += "; the type has a limit, and some run"
			}
			v.add(Trouble{Warning: limited[name], Kind: Waiting, Name: name, Since: l.Head, Text: text, Show: "onbeat tasks list --state waiting --type " + name})
		}
		for k := range may {
			if may[k].Running == 0 && late > idleFor && !limited[name] && v.list.PausedUntil.IsZero() && v.list.handledBy(&may[k], l.Lane.Queue, name) {
				if was, ok := idle[may[k].ID]; !ok || l.Head.Before(was) {
					idle[may[k].ID] = l.Head
				}
			}
		}
	}
	for id, since := range idle {
		v.add(Trouble{Kind: InstanceIdle, Name: id, Since: since, Text: "this instance is ready and claims nothing, though tasks wait", Show: "onbeat instances"})
	}
	v.lookAtWorkers(may, oldest)
}

// lookAtWorkers notes which runs hold the workers, and tells if all of them are held.
func (v *view) lookAtWorkers(may []Instance, oldest time.Time) {
	v.crew.waits = oldest
	v.crew.held = slices.DeleteFunc(slices.Clone(v.held), func(h queue.Held) bool { // of others: an older release that drains, or the dispatcher's own
		own := strings.HasPrefix(h.ID, task.Own) && !strings.ContainsAny(h.ID, "@!") // a schedule may have such a name
		return own || !slices.ContainsFunc(may, func(i Instance) bool { return i.ID == h.Instance })
	})
	ready := 0
	for i := range v.list.Items {
		if x := &v.list.Items[i]; x.State == "ready" && x.LeaseLeftMS > 0 && !x.Standby {
			ready++
		}
	}
	switch lead := v.list.Leader(); {
	case lead == nil:
	case lead.Consume == instance.ConsumeNewest:
		v.crew.hint = "; with consume: newest the leader alone takes work, and further instances add no workers: raise concurrency, or set consume: release"
	case ready > len(may):
		v.crew.hint = fmt.Sprintf("; with consume: %s, %d of %d ready instances take work", lead.Consume, len(may), ready)
	}
	if t, ok := v.crew.busy(may, v.Asked); ok {
		v.Trouble = append(v.Trouble, t)
	}
}

// busy returns a line if all workers of a team are held by long runs while tasks wait.
func (c *crew) busy(team []Instance, now time.Time) (line Trouble, ok bool) {
	held, workers := c.held, 0
	for i := range team {
		workers += team[i].Concurrency
	}
	if workers == 0 || len(held) < workers || c.waits.IsZero() || now.Sub(c.waits) < lateBy {
		return line, false
	}
	slices.SortFunc(held, func(a, b queue.Held) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	if now.Sub(held[workers-1].At) < lateBy {
		return line, false // some are short: there are too few workers, but nothing hangs
	}
	var names []string
	for _, h := range held[:min(len(held), longestRuns)] {
		names = append(names, fmt.Sprintf("%s (%s)", h.ID, wording.Span(now.Sub(h.At))))
	}
	text := fmt.Sprintf("all %d workers are busy, and tasks wait; the longest runs: %s%s", workers, strings.Join(names, ", "), c.hint)
	return Trouble{Kind: WorkersBusy, Since: c.waits, Text: text, Show: "onbeat tasks list --state running"}, true
}

func (v *view) lookAtCaps(n *queue.Counts, caps queue.Caps) {
	for _, c := range []struct {
		what    string
		n, most int64
		command string
	}{
		{"lanes (a queue, priority and type each)", int64(len(n.Lanes)), queue.MostLanes, "onbeat doctor"},
		{"dead tasks", n.Dead, int64(caps.Dead), "onbeat tasks failures"},
	} {
		if c.most > 0 && float64(c.n) >= nearlyFull*float64(c.most) {
			v.add(Trouble{Warning: true, Kind: NearlyFull, Name: c.what, Text: fmt.Sprintf("%d of at most %d %s", c.n, c.most, c.what), Show: c.command})
		}
	}
}

// lookAtDead groups the tasks that died lately and are still dead.
func (a *activity) lookAtDead(ctx context.Context, v *view, dead int64) error {
	if dead == 0 {
		return nil
	}
	page, err := a.tasks.failures(ctx, FailureQuery{}, 1) // the newest are enough to name the causes
	if err != nil {
		return err
	}
	least := ""
	if page.Next != "" {
		least = "at least "
	}
	from := v.now.Add(-lately)
	groups := slices.DeleteFunc(page.Items, func(g FailureGroup) bool { return g.Newest.Before(from) })
	for i, g := range groups {
		if i == mostCauses {
			v.More += len(groups) - i
			break
		}
		dead := sum{int64(g.Tasks), least + g.Error, func(n int64) string {
			return least + wording.Count(n, "task failed", "tasks failed") + " for good: " + g.Error
		}}
		v.add(Trouble{Kind: DeadTasks, Name: g.Type, Since: later(g.Oldest, from), Show: "onbeat tasks failures", Text: dead.say(dead.n), sum: dead})
	}
	return nil
}

// allPaused says until when all instances are paused, by whom and why.
func allPaused(until time.Time, by, reason string) string {
	text := "all instances are paused"
	if by != "" {
		text += " by " + by
	}
	text += " until " + until.UTC().Format(time.RFC3339) + ": no task begins"
	if reason != "" {
		text += "; the reason is: " + reason
	}
	return text
}

// archiveBehind is how old the first entry may be that is not archived.
const archiveBehind = time.Minute

// lookAtArchive looks whether the archive has what happened.
func (a *activity) lookAtArchive(ctx context.Context, v *view) error {
	since, err := a.past.Behind(ctx)
	if err == nil && !since.IsZero() && v.now.Sub(since) > archiveBehind {
		v.add(Trouble{Kind: Archived, Since: since, Text: "the archive is behind", Show: "onbeat doctor"})
	}
	return err
}

// handledBy reports whether one instance may take tasks of a type in a queue; "" is any queue.
func (l *InstanceList) handledBy(i *Instance, queueName, typ string) bool {
	one := InstanceList{Now: l.Now, Items: []Instance{*i}}
	if lead := l.Leader(); lead != nil && lead.ID != i.ID {
		one.Items = append(one.Items, *lead)
		one.Items[1].Types = nil
	}
	if queueName == "" {
		queueName = task.DefaultQueue
		if len(i.Queues) > 0 {
			queueName = i.Queues[0]
		}
	}
	return one.Handles(queueName, typ)
}
