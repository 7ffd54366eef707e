package notify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// repeats are the distances at which the dead tasks of one schedule are told of: the first at once, those of the next minute
// together, and so on; from then on the last distance counts. A schedule that is well again begins anew.
var repeats = []time.Duration{0, time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 8 * time.Hour}

// deaths are the tasks of a schedule that died and of which no target has heard yet.
type deaths struct {
	Untold int64  `json:"untold,omitempty"`
	First  int64  `json:"first,omitempty"` // when the first of these died, in Unix milliseconds
	Task   string `json:"task,omitempty"`  // the last of these
	// Told is when a message last told of such tasks, and Times how many messages did.
	Told  int64 `json:"told,omitempty"`
	Times int   `json:"times,omitempty"`
}

func (d *deaths) add(x queue.Death) {
	if d.Untold == 0 {
		d.First = x.At.UnixMilli()
	}
	d.Untold++
	d.Task = x.ID
}

// due reports whether to tell of them at the end of a window.
func (d *deaths) due(end time.Time) bool {
	return d.Untold > 0 && end.UnixMilli()-d.Told >= repeats[min(d.Times, len(repeats)-1)].Milliseconds()
}

func (d *deaths) tell(end time.Time) {
	*d = deaths{Told: end.UnixMilli(), Times: d.Times + 1}
}

// takeDied takes in the tasks that died in the window that ends, and returns those whose records are to be shown. Each task of no
// schedule is told of, and those of a schedule when it is time.
func (r *round) takeDied(list []queue.Death, end time.Time) (shown []string) {
	order := slices.DeleteFunc(r.sorted(), func(a about) bool { // the longest untold first
		s := r.subjects[a]
		return a.what != aSchedule || s.Deaths == nil || s.Deaths.Untold == 0
	})
	for _, d := range list {
		if isOwn(d.ID) {
			continue
		}
		name := queue.ScheduleOf(d.ID)
		s := r.subjectOfDeath(name, d.At)
		if s == nil {
			r.add(Dead, 1, Notice{At: d.At, Schedule: name, Task: d.ID, Text: "dead"})
			continue
		}
		if s.Deaths.Untold == 0 {
			order = append(order, about{aSchedule, name})
		}
		s.Deaths.add(d)
	}
	for _, a := range order {
		if s := r.subjects[a]; s.Deaths.due(end) || s.well(end, r.window) {
			d := s.Deaths
			n := Notice{At: time.UnixMilli(d.First).UTC(), Schedule: a.name, Task: d.Task, Text: "dead"}
			if d.Untold > 1 {
				n.Count = d.Untold
			}
			r.add(Dead, d.Untold, n)
			d.tell(end)
			s.touched = true
		}
	}
	for k, g := range r.groups {
		if k.topic == Dead {
			for i := range g.notices {
				shown = append(shown, g.notices[i].Task)
			}
		}
	}
	slices.Sort(shown)
	return slices.Compact(shown)
}

// subjectOfDeath is the schedule a task of which died. It is nil for a task of no schedule, and if there are too many schedules.
func (r *round) subjectOfDeath(name string, at time.Time) *subject {
	if name == "" {
		return nil
	}
	s := r.subject(about{aSchedule, name})
	if s == nil {
		return nil
	}
	if s.Deaths == nil {
		s.Deaths = &deaths{}
	}
	s.At, s.touched = max(s.At, at.UnixMilli()), true
	return s
}

// describe adds to the notices of dead tasks what their records say.
func (r *round) describe(records map[string]*task.Task) {
	for k, g := range r.groups {
		if k.topic != Dead {
			continue
		}
		for i := range g.notices {
			n := &g.notices[i]
			if t := records[n.Task]; t != nil {
				n.Type, n.Error = t.Type, shortError(t.LastError())
				n.Text = "dead after " + wording.Count(int64(t.Attempts), "attempt", "attempts")
			}
			if n.Count > 1 {
				n.Text += fmt.Sprintf(", the last of %s since %s", grouped(n.Count), n.At.Format(time.RFC3339))
			}
		}
	}
}

// sorted are the subjects in the order of their names.
func (r *round) sorted() []about {
	names := make([]about, 0, len(r.subjects))
	for a := range r.subjects {
		names = append(names, a)
	}
	slices.SortFunc(names, func(a, b about) int {
		return cmp.Or(strings.Compare(a.what, b.what), strings.Compare(a.name, b.name))
	})
	return names
}
