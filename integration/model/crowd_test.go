package model

import (
	"cmp"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// scheduleOf returns the schedule that an ID names. Its tasks are no slots in the model, which has only one schedule.
func scheduleOf(id string) string {
	name, _, slot := strings.Cut(id, "@")
	if !slot {
		return ""
	}
	return name
}

// counted adds tasks to the workers that schedules have.
func counted(list []queue.Taken, ids ...string) []queue.Taken {
	for _, id := range ids {
		name := scheduleOf(id)
		at, found := slices.BinarySearchFunc(list, name, func(t queue.Taken, name string) int { return cmp.Compare(t.Schedule, name) })
		switch {
		case name == "":
		case found:
			list[at].Workers++
		default:
			list = slices.Insert(list, at, queue.Taken{Schedule: name, Workers: 1})
		}
	}
	return list
}

func (p *proc) taken() (list []queue.Taken) {
	for _, x := range p.claims {
		list = counted(list, x.id)
	}
	return list
}

// judgeCrowd: a schedule with half of the workers or more gets no other while a task of others is due, unless that is of such a
// schedule too.
func (b *book) judgeCrowd(w *world, c call, r *queue.CycleReply) {
	half := w.room.workers / 2
	if half == 0 {
		return
	}
	now := slices.Clone(c.taken)
	full := map[string]bool{} // the schedules that have half by now
	over := ""                // one that got more by this call
	for _, t := range r.Claimed {
		now = counted(now, t.ID)
	}
	for _, t := range now {
		full[t.Schedule] = t.Workers >= half
		if t.Workers > half && slices.ContainsFunc(r.Claimed, func(o *task.Task) bool { return scheduleOf(o.ID) == t.Schedule }) {
			over = t.Schedule
		}
	}
	for _, l := range lanes {
		if over == "" || l.Limit > 0 && b.count(func(o entry) bool { return o.typ == l.Lane.Type }) >= l.Limit {
			continue
		}
		for _, f := range w.disk[keys.Due(l.Lane)].fields {
			if name := scheduleOf(f.name); int64(f.score) <= w.now && name != over && !full[name] {
				broken(2, "%s has %v of %d workers, and left %s", c.id, now, w.room.workers, f.name)
			}
		}
	}
}
