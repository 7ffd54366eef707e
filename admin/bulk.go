package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// Action is what [Tasks.Bulk] does to many tasks.
type Action string

// The actions, and the states that they apply to.
const (
	CancelTasks Action = "cancel" // running, waiting, retrying or planned
	RetryTasks  Action = "retry"  // dead; a task of a slot gets what its schedule says now
	RetryAsWas  Action = "retry_as_it_was"
	DeleteTasks Action = "delete" // dead or done, as the filter says; by default dead
)

// Bulk does one thing to the tasks that a filter matches, a page at a time. It leaves alone the dispatcher's own tasks, whose types begin
// with [task.Own], unless the filter names the type. To go on, the caller repeats it with After set to the
// Next of the result. A task that changes its state meanwhile may be met twice or never.
type Bulk struct {
	Action Action     `json:"action"`
	Filter TaskFilter `json:"filter"`
	DryRun bool       `json:"dry_run,omitempty"` // only count them
	After  string     `json:"after,omitempty"`
	// Reason says why. The event of each page has it.
	Reason string `json:"reason,omitempty" maxLength:"200" doc:"Why. The events have it."`
}

// tellTime is how long a page may take to tell what it did, when its caller waits no more.
const tellTime = time.Second

// BulkResult is what came of one page of a [Bulk].
type BulkResult struct {
	Matched int `json:"matched"`
	Changed int `json:"changed"`
	// Unreadable tasks are of a newer release, or damaged. They are left alone.
	Unreadable int    `json:"unreadable"`
	AtLeast    bool   `json:"at_least,omitempty"` // as that of a [BulkTask]
	DryRun     bool   `json:"dry_run"`
	Next       string `json:"next,omitempty"` // "": that was the last page
}

// Add counts another page.
func (r *BulkResult) Add(page BulkResult) {
	r.Matched += page.Matched
	r.Changed += page.Changed
	r.Unreadable += page.Unreadable
	r.DryRun, r.Next = page.DryRun, page.Next
}

// shelves returns where the tasks lie that the action applies to and the filter asks for.
func (b *Bulk) shelves() ([]shelf, error) {
	var may []TaskState
	var byDefault []shelf
	switch b.Action {
	case CancelTasks:
		may, byDefault = []TaskState{TaskRunning, TaskWaiting, TaskRetrying, TaskPlanned}, []shelf{shelfOf(TaskRunning), due}
	case RetryTasks, RetryAsWas:
		may, byDefault = []TaskState{TaskDead}, []shelf{shelfOf(TaskDead)}
	case DeleteTasks:
		may, byDefault = []TaskState{TaskDead, TaskDone}, []shelf{shelfOf(TaskDead)}
	default:
		return nil, &task.FieldError{Field: "action", Value: string(b.Action), Reason: "unknown", Hint: "use cancel, retry, retry_as_it_was or delete"}
	}
	if b.Filter.Type == task.BulkType {
		return nil, &task.FieldError{Field: "filter.type", Value: task.BulkType, Reason: "a bulk action changes no other one", Hint: "stop each by itself"}
	}
	if b.Filter.State == "" {
		return byDefault, nil
	}
	if slices.Contains(may, b.Filter.State) {
		return []shelf{shelfOf(b.Filter.State)}, nil
	}
	return nil, &task.FieldError{Field: "filter.state", Value: string(b.Filter.State), Reason: "the action " + string(b.Action) + " does not apply to it"}
}

func (t *tasks) Bulk(ctx context.Context, b Bulk) (BulkResult, error) {
	out := BulkResult{DryRun: b.DryRun}
	from, err := b.shelves()
	if err == nil {
		err = queue.CheckReason(b.Reason)
	}
	if err != nil {
		return out, err
	}
	now, err := t.q.Now(ctx)
	if err != nil {
		return out, err
	}
	place := placeOf(b.After)
	o := TaskQuery{TaskFilter: b.Filter, Limit: queue.MaxBatch, After: place.after}
	left := queue.MaxBatch
	out.Next, err = t.walk(ctx, o, now, from, func(p *queue.Page) (int, error) {
		left -= len(p.Tasks)
		var readable []*task.Task
		for i := range p.Tasks {
			switch f := &p.Tasks[i]; {
			case f.Unreadable != nil || f.Task.Type == "":
				out.Unreadable++
			case !strings.HasPrefix(f.Task.Type, task.Own) || f.Task.Type == b.Filter.Type:
				readable = append(readable, f.Task)
			}
		}
		out.Matched += len(readable)
		if b.DryRun {
			return left, nil
		}
		n, err := t.act(queue.InBulk(ctx), b.Action, readable)
		out.Changed += n
		return left, err
	})
	if out.Changed > 0 {
		err = errors.Join(err, t.tell(ctx, &b, &out))
	}
	if err == nil && b.Action == CancelTasks && !b.DryRun && from[len(from)-1].place == task.Due {
		out.Next = place.next(&out, from[len(from)-1])
	}
	return out, err
}

// tell adds the one event of a page: what was done, to which tasks, and how many of them there were.
func (t *tasks) tell(ctx context.Context, b *Bulk, page *BulkResult) error {
	filter, err := json.Marshal(b.Filter)
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), tellTime) // the event is added, also if the page was cut off
	defer done()
	return t.q.Tell(ctx, "tasks changed", "action", string(b.Action), "filter", string(filter), "tasks", strconv.Itoa(page.Changed),
		"by", queue.Actor(ctx), "reason", b.Reason)
}

// place is where a bulk goes on. A cancel goes over the tasks in the lanes again until nothing changes: to cancel a task lets the next
// one of its key move up into a lane, which may lie behind.
type place struct {
	pass    int  // how often it has gone over them before, at most 9
	changed bool // whether this pass has cancelled a task so far
	after   string
}

func placeOf(cursor string) place {
	if len(cursor) > 2 && cursor[0] >= '0' && cursor[0] <= '9' && (cursor[1] == '+' || cursor[1] == '-') {
		return place{pass: int(cursor[0] - '0'), changed: cursor[1] == '+', after: cursor[2:]}
	}
	return place{after: cursor}
}

// next returns the cursor behind a page. A later pass meets what an earlier one left alone, so it counts only what it changes.
func (p place) next(page *BulkResult, again shelf) string {
	if p.pass > 0 {
		page.Matched, page.Unreadable = page.Changed, 0
	}
	p.changed = p.changed || page.Changed > 0
	if p.after = page.Next; p.after == "" {
		if !p.changed || p.pass == 9 { // others may add tasks without end
			return ""
		}
		p.pass, p.changed, p.after = p.pass+1, false, again.name+"."
	}
	mark := byte('-')
	if p.changed {
		mark = '+'
	}
	return string([]byte{byte('0' + p.pass), mark}) + p.after
}

// cancel cancels one of many tasks.
func (t *tasks) cancel(ctx context.Context, id string) error {
	was, err := t.q.Cancel(ctx, id, byHand, false)
	if err == nil && was != task.Due && was != task.Running {
		return &StateError{ID: id, State: TaskState(was)}
	}
	return err
}

// act does the action to each task, and returns how many it changed. A task that has gone by then, or has another state, is
// not counted.
func (t *tasks) act(ctx context.Context, a Action, list []*task.Task) (n int, err error) {
	if a == RetryTasks || a == RetryAsWas {
		n, _, err := t.s.Revive(ctx, list, a == RetryAsWas)
		return n, err
	}
	for _, x := range list {
		if a == CancelTasks {
			err = t.cancel(ctx, x.ID)
		} else {
			err = t.q.Forget(ctx, x.ID, byHand)
		}
		switch {
		case errors.Is(err, task.ErrNotFound), errors.As(err, new(*StateError)):
		case err != nil:
			return n, err
		default:
			n++
		}
	}
	return n, nil
}
