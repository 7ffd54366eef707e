package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	// archive knows any more: its state is [Gone]. The error matches [task.ErrNotFound] if there is none.
	Get(ctx context.Context, id string) (Task, error)
	// List reads a page of tasks. A page may be short, even empty, and still have a Next.
	List(ctx context.Context, o TaskQuery) (List[Task], error)
	// Failures groups a page of the dead tasks that a filter matches by what they died of; see [FailureGroup].
	Failures(ctx context.Context, o FailureQuery) (List[FailureGroup], error)
	// Cancel removes a due task, or asks the instance that runs it to stop. It returns the state in which it found the task.
	// It returns a [*StateError] for a task that has ended.
	Cancel(ctx context.Context, id string) (task.State, error)
	// Retry makes a dead task due again, and says as what: see [DueAgain]. A task of a slot gets what its schedule says now, unless
	// asItWas is set; see [producer.Schedules.Revive]. Retry returns a [*StateError] for a task in another state.
	Retry(ctx context.Context, id string, asItWas bool) (string, error)
	// Delete is Cancel that also forgets a task that has ended.
	Delete(ctx context.Context, id string) (task.State, error)
	// Bulk does one thing to a page of the tasks that a filter matches; see [Bulk].
	Bulk(ctx context.Context, b Bulk) (BulkResult, error)
}

// TaskFilter says which tasks are meant. An empty field means any.
type TaskFilter struct {
	State    task.State `json:"state,omitempty"`
	Queue    string     `json:"queue,omitempty"`
	Type     string     `json:"type,omitempty"`
	Schedule string     `json:"schedule,omitempty"`
	Key      string     `json:"key,omitempty"`
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
}

// byHand is the reason given for what a person cancels.
const byHand = "cancelled by hand"

// listed are the states in the order in which tasks of any state are listed.
var listed = []task.State{task.Running, task.Due, task.Dead, task.Done}

// tasks are the tasks of a namespace on Redis.
type tasks struct {
	q    *queue.Queue
	p    *producer.Producer
	s    *producer.Schedules
	past *past.Past
}

func (t *tasks) Enqueue(ctx context.Context, list []*task.Task) ([]Enqueued, error) {
	if len(list) == 1 { // concurrent calls share round trips
		id, err := t.p.Enqueue(ctx, list[0])
		refused := errors.Is(err, task.ErrDuplicate) || errors.Is(err, task.ErrInvalid) && !errors.As(err, new(*producer.BatchError))
		if err != nil && !refused {
			return nil, err
		}
		return []Enqueued{{id, err}}, nil
	}
	results, err := t.p.EnqueueAll(ctx, list)
	out := make([]Enqueued, len(results))
	for i, r := range results {
		out[i] = Enqueued{r.ID, r.Err}
	}
	return out, err
}

func (t *tasks) Get(ctx context.Context, id string) (Task, error) {
	f, err := t.q.Task(ctx, id)
	switch {
	case errors.Is(err, task.ErrNotFound):
		return t.forgotten(ctx, id, err)
	case err != nil:
		return Task{}, err
	}
	out := taskOf(&f, t.p, t.q.Seal())
	t.remember(ctx, &out)
	return out, nil
}

func (t *tasks) List(ctx context.Context, o TaskQuery) (List[Task], error) {
	page := ListOf[Task](nil, "")
	if o.Limit <= 0 {
		o.Limit = 100
	}
	o.Limit = min(o.Limit, 1000)
	var err error
	page.Next, err = t.walk(ctx, o, listed, func(p *queue.Page) (int, error) {
		for i := range p.Tasks {
			page.Items = append(page.Items, taskOf(&p.Tasks[i], t.p, t.q.Seal()))
		}
		return o.Limit - len(page.Items), nil
	})
	return page, err
}

// walk reads tasks, one state after the other, until fn wants no more: fn returns how many it still wants. A page that has a
// next one ends the walk too, even if it is short, because queue.List found it costly to look further. walk returns where to
// go on.
func (t *tasks) walk(ctx context.Context, o TaskQuery, states []task.State, fn func(*queue.Page) (int, error)) (next string, err error) {
	if o.State != "" {
		if _, err := task.ParseState(string(o.State)); err != nil {
			return "", err
		}
		states = []task.State{o.State}
	}
	at, after, err := startOf(states, o.After)
	if err != nil {
		return "", err
	}
	left, had := o.Limit, 0
	for ; at < len(states); at++ {
		p, err := t.q.List(ctx, states[at], queue.ListOptions{
			Queue: o.Queue, Type: o.Type, Schedule: o.Schedule, Key: o.Key, Error: o.Error, Limit: left, After: after, Had: had,
		})
		if err != nil {
			return "", err
		}
		if left, err = fn(&p); err != nil {
			return "", err
		}
		if p.Next != "" {
			return string(states[at]) + "." + p.Next, nil
		}
		had += p.Bytes
		if after = ""; (left <= 0 || had >= queue.PageBytes) && at+1 < len(states) {
			return string(states[at+1]) + ".", nil
		}
	}
	return "", nil
}

// startOf reads a cursor: the state whose tasks come next, and the place among them.
func startOf(states []task.State, cursor string) (at int, after string, err error) {
	if cursor == "" {
		return 0, "", nil
	}
	name, after, ok := strings.Cut(cursor, ".")
	for i, s := range states {
		if ok && name == string(s) {
			return i, after, nil
		}
	}
	return 0, "", &task.FieldError{Field: "after", Value: cursor, Reason: "not a cursor of this list", Hint: "pass the next of the previous page, with the same filters"}
}

func (t *tasks) Cancel(ctx context.Context, id string) (task.State, error) {
	was, err := t.q.Cancel(ctx, id, byHand, false)
	if err == nil && was != task.Due && was != task.Running {
		err = &StateError{ID: id, State: was}
	}
	return was, err
}

func (t *tasks) Delete(ctx context.Context, id string) (task.State, error) {
	return t.q.Cancel(ctx, id, byHand, true)
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
		return "", &StateError{ID: id, State: found.State, Want: task.Dead}
	case len(anew) > 0:
		return DueAnew, nil
	case found.Task.Schedule == "" || found.Task.Slot.IsZero():
		return DueAgain, nil
	case asItWas:
		return DueAsItWas, nil
	}
	return DueOfNothing, nil
}
