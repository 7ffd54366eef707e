package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Tasks adds, shows and changes tasks.
type Tasks interface {
	// Enqueue adds tasks, in one batch, and returns what became of each; see [Enqueued]. The error says how far the batch came; see [producer.Producer.EnqueueAll].
	Enqueue(ctx context.Context, list []*task.Task) ([]Enqueued, error)
	// Get finds a task in any state, with the runs that the archive knows of it, if there is one; also a task that only the
	// archive knows any more: its state is [TaskGone]. The error matches [task.ErrNotFound] if there is none.
	Get(ctx context.Context, id string) (Task, error)
	// List reads a page of tasks. A page may be short, even empty, and still have a Next.
	List(ctx context.Context, o TaskQuery) (List[Task], error)
	// Failures groups a page of the dead tasks that a filter matches by what they died of; see [FailureGroup].
	Failures(ctx context.Context, o FailureQuery) (List[FailureGroup], error)
	// Cancel removes a task that has not begun or comes again, or asks the instance that runs it to stop. It returns the state in which it
	// found the task.
	// It returns a [*StateError] for a task that has ended.
	Cancel(ctx context.Context, id string) (TaskState, error)
	// Retry makes a dead task due again, and says as what: see [DueAgain]. A task of a slot gets what its schedule says now, unless
	// asItWas is set; see [producer.Schedules.Revive]. Retry returns a [*StateError] for a task in another state.
	Retry(ctx context.Context, id string, asItWas bool) (string, error)
	// Delete is Cancel that also forgets a task that has ended.
	Delete(ctx context.Context, id string) (TaskState, error)
	// Bulk does one thing to a page of the tasks that a filter matches; see [Bulk].
	Bulk(ctx context.Context, b Bulk) (BulkResult, error)
}

// TaskFilter says which tasks are meant. An empty field means any.
type TaskFilter struct {
	// In Queue, Type and Schedule a * stands for any text; no name has one.
	State    TaskState `json:"state,omitempty"`
	Queue    string    `json:"queue,omitempty"`
	Type     string    `json:"type,omitempty"`
	Schedule string    `json:"schedule,omitempty"`
	Key      string    `json:"key,omitempty"`
	// Backfill means tasks of backfills alone.
	Backfill bool `json:"backfill,omitempty"`
	// Error means tasks whose last error has the cause of this one; see [task.Cause]. A * in it stands for any text.
	Error string `json:"error,omitempty"`
}

// TaskQuery says which page of tasks to list.
type TaskQuery struct {
	TaskFilter
	// Limit is the most tasks on the page, up to 1,000. Default 100.
	Limit int
	// After is the Next of the page before.
	After string
	// Brief leaves out payloads, and all failures of a task but the last.
	Brief bool
}

// byHand is the reason given for what a person cancels.
const byHand = "cancelled by hand"

// tasks are the tasks of a namespace on Redis.
type tasks struct {
	q    *queue.Queue
	p    *producer.Producer
	s    *producer.Schedules
	past *past.Past

	over *overParts // nil: q is the whole namespace
}

// overParts reads the tasks of all partitions.
type overParts struct {
	now  func(ctx context.Context) (time.Time, error)
	list func(ctx context.Context, state task.State, o queue.ListOptions) (queue.Page, error)
}

func (t *tasks) now(ctx context.Context) (time.Time, error) {
	if t.over != nil {
		return t.over.now(ctx)
	}
	return t.q.Now(ctx)
}

func (t *tasks) page(ctx context.Context, state task.State, o queue.ListOptions) (queue.Page, error) {
	if t.over != nil {
		return t.over.list(ctx, state, o)
	}
	return t.q.List(ctx, state, o)
}

func (t *tasks) Enqueue(ctx context.Context, list []*task.Task) ([]Enqueued, error) {
	return enqueue(ctx, t.p, list)
}

func (t *tasks) Get(ctx context.Context, id string) (Task, error) {
	f, err := t.q.Task(ctx, id)
	switch {
	case errors.Is(err, task.ErrNotFound):
		return t.forgotten(ctx, id, err)
	case err != nil:
		return Task{}, err
	}
	now, err := t.q.Now(ctx)
	if err != nil {
		return Task{}, err
	}
	out := taskOf(&f, now, t.p, t.q.Seal())
	t.remember(ctx, &out)
	return out, nil
}

func (t *tasks) List(ctx context.Context, o TaskQuery) (List[Task], error) {
	page := ListOf[Task](nil, "")
	if o.Limit <= 0 {
		o.Limit = 100
	}
	o.Limit = min(o.Limit, 1000)
	now, err := t.now(ctx)
	if err != nil {
		return page, err
	}
	page.Next, err = t.walk(ctx, o, now, listed, func(p *queue.Page) (int, error) {
		for i := range p.Tasks {
			x := taskOf(&p.Tasks[i], now, t.p, t.q.Seal())
			if o.Brief {
				x = x.brief()
			}
			page.Items = append(page.Items, x)
		}
		return o.Limit - len(page.Items), nil
	})
	return page, err
}

// walk reads tasks as of now, one shelf after the other, until fn wants no more: fn returns how many it still wants. A page that has a
// next one ends the walk too, even if it is short, because queue.List found it costly to look further. walk returns where to
// go on.
func (t *tasks) walk(ctx context.Context, o TaskQuery, now time.Time, from []shelf, fn func(*queue.Page) (int, error)) (next string, err error) {
	if o.State != "" {
		if _, err := ParseTaskState(string(o.State)); err != nil {
			return "", err
		}
		from = []shelf{shelfOf(o.State)}
	}
	at, after, err := startOf(from, o.After)
	if err != nil {
		return "", err
	}
	left, had := o.Limit, 0
	for ; at < len(from); at++ {
		p, err := t.page(ctx, from[at].place, queue.ListOptions{
			Queue: o.Queue, Type: o.Type, Schedule: o.Schedule, Key: o.Key, Backfill: o.Backfill, Error: o.Error, Limit: left, After: after, Had: had,
			Part: from[at].part, Now: now,
		})
		if err != nil {
			return "", err
		}
		if left, err = fn(&p); err != nil {
			return "", err
		}
		if p.Next != "" {
			return from[at].name + "." + p.Next, nil
		}
		had += p.Bytes
		if after = ""; (left <= 0 || had >= queue.PageBytes) && at+1 < len(from) {
			return from[at+1].name + ".", nil
		}
	}
	return "", nil
}

// startOf reads a cursor: the shelf whose tasks come next, and the place among them.
func startOf(from []shelf, cursor string) (at int, after string, err error) {
	if cursor == "" {
		return 0, "", nil
	}
	name, after, ok := strings.Cut(cursor, ".")
	for i := range from {
		if ok && name == from[i].name {
			return i, after, nil
		}
	}
	return 0, "", &task.FieldError{Field: "after", Value: cursor, Reason: "not a cursor of this list", Hint: "pass the next of the previous page, with the same filters"}
}

func (t *tasks) Cancel(ctx context.Context, id string) (TaskState, error) {
	return t.end(ctx, id, false)
}

func (t *tasks) Delete(ctx context.Context, id string) (TaskState, error) {
	return t.end(ctx, id, true)
}

// end cancels a task. With forget it also removes a task that has ended. A task that moves meanwhile, and is due by then, has been waiting.
func (t *tasks) end(ctx context.Context, id string, forget bool) (TaskState, error) {
	seen, unread := t.q.Task(ctx, id) // a record that cannot be read may still be removed
	now, err := t.q.Now(ctx)
	if err != nil {
		return "", err
	}
	place, err := t.q.Cancel(ctx, id, byHand, forget)
	was := TaskState(place)
	if place == task.Due {
		was = TaskWaiting
		if unread == nil && seen.State == task.Due {
			was = stateOf(&seen, now)
		}
	}
	if err == nil && !forget && (place == task.Dead || place == task.Done) {
		err = &StateError{ID: id, State: was}
	}
	return was, err
}

// The results of [Tasks.Retry].
const (
	DueAgain     = "due again"                                    // a task of no slot
	DueAnew      = "due again as its schedule is now"             // with the present payload, type and settings
	DueAsItWas   = "due again as it was"                          // because the caller asked for it
	DueOfNothing = "due again as it was, as its schedule is gone" // or cannot be read here
)

func (t *tasks) Retry(ctx context.Context, id string, asItWas bool) (string, error) {
	found, err := t.q.Task(ctx, id)
	if err != nil {
		return "", err
	}
	if found.Unreadable != nil {
		return "", fmt.Errorf("task %q: %w (a newer release wrote it, or it is damaged: no instance here can run it)", id, found.Unreadable)
	}
	n, anew := 0, []string(nil)
	if found.State == task.Dead {
		n, anew, err = t.s.Revive(ctx, []*task.Task{found.Task}, asItWas)
	}
	switch {
	case err != nil:
		return "", err
	case n == 0:
		now, err := t.q.Now(ctx)
		if err != nil {
			return "", err
		}
		return "", &StateError{ID: id, State: stateOf(&found, now), Want: TaskDead}
	case len(anew) > 0:
		return DueAnew, nil
	case found.Task.Schedule == "" || found.Task.Slot.IsZero():
		return DueAgain, nil
	case asItWas:
		return DueAsItWas, nil
	}
	return DueOfNothing, nil
}
