package admin

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// FailureQuery says which dead tasks to group. The state of its filter is ignored.
type FailureQuery struct {
	TaskFilter
	// After is the Next of the page before.
	After string
}

// FailureGroup are the dead tasks of one type that died of one cause, as far as one page has them: up to 10,000 tasks, those that died
// last first. A group may go on on the next page: a caller that reads several pages adds up the groups with the same Type and Error.
type FailureGroup struct {
	// Type is empty for tasks that cannot be read. No filter takes those.
	Type string `json:"type"`
	// Error is the cause, which [TaskFilter.Error] takes.
	Error  string    `json:"error"`
	Tasks  int       `json:"tasks"`
	Oldest time.Time `json:"oldest"`
	Newest time.Time `json:"newest"`
	Last   string    `json:"last"` // the ID of the task that died last
	// Schedules are those of the tasks, that of the task that died last first: at most 10. MoreSchedules says that there are others.
	Schedules     []string `json:"schedules,omitempty"`
	MoreSchedules bool     `json:"more_schedules,omitempty"`
}

// failureSchedules is how many schedules a group names.
const failureSchedules = 10

// Add adds the same group of the next page.
func (g *FailureGroup) Add(next FailureGroup) {
	g.Tasks += next.Tasks
	g.Oldest = next.Oldest
	g.MoreSchedules = g.MoreSchedules || next.MoreSchedules
	for _, name := range next.Schedules {
		g.of(name)
	}
}

// of names a schedule.
func (g *FailureGroup) of(schedule string) {
	switch {
	case schedule == "" || slices.Contains(g.Schedules, schedule):
	case len(g.Schedules) == failureSchedules:
		g.MoreSchedules = true
	default:
		g.Schedules = append(g.Schedules, schedule)
	}
}

// failurePages is how many pages of tasks one page of groups is made from.
const failurePages = 10

func (t *tasks) Failures(ctx context.Context, o FailureQuery) (List[FailureGroup], error) {
	return t.failures(ctx, o, failurePages)
}

func (t *tasks) failures(ctx context.Context, o FailureQuery, pages int) (List[FailureGroup], error) {
	type kind struct{ typ, cause string }
	groups := map[kind]*FailureGroup{}
	collect := func(p *queue.Page) (int, error) {
		for i := range p.Tasks {
			f := &p.Tasks[i]
			k := kind{f.Task.Type, task.Cause(f.Task.LastError())}
			if f.Unreadable != nil {
				k = kind{"", task.Cause(f.Unreadable.Error())}
			}
			g := groups[k]
			if g == nil { // the newest come first
				g = &FailureGroup{Type: k.typ, Error: k.cause, Newest: f.At, Last: f.Task.ID}
				groups[k] = g
			}
			g.Tasks++
			g.Oldest = f.At
			g.of(f.Task.Schedule)
		}
		return 0, nil
	}
	q := TaskQuery{TaskFilter: o.TaskFilter, Limit: queue.MaxBatch, After: o.After}
	q.State = ""
	for range pages {
		var err error
		if q.After, err = t.walk(ctx, q, time.Time{}, []shelf{shelfOf(TaskDead)}, collect); err != nil {
			return ListOf[FailureGroup](nil, ""), err
		}
		if q.After == "" {
			break
		}
	}
	page := ListOf[FailureGroup](nil, q.After)
	for _, g := range groups {
		page.Items = append(page.Items, *g)
	}
	sortFailures(page.Items)
	return page, nil
}

func sortFailures(list []FailureGroup) {
	slices.SortFunc(list, func(a, b FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Error, b.Error))
	})
}
