package admin

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// adder adds tasks, as a [producer.Producer] does.
type adder interface {
	Enqueue(ctx context.Context, t *task.Task, opts ...task.Option) (string, error)
	EnqueueAll(ctx context.Context, list []*task.Task) ([]producer.Result, error)
}

func enqueue(ctx context.Context, p adder, list []*task.Task) ([]Enqueued, error) {
	if len(list) == 1 { // concurrent calls share round trips
		id, err := p.Enqueue(ctx, list[0])
		refused := errors.Is(err, task.ErrDuplicate) || errors.Is(err, task.ErrInvalid) && !errors.As(err, new(*producer.BatchError))
		if err != nil && !refused {
			return nil, err
		}
		return []Enqueued{{id, err}}, nil
	}
	results, err := p.EnqueueAll(ctx, list)
	out := make([]Enqueued, len(results))
	for i, r := range results {
		out[i] = Enqueued{r.ID, r.Err}
	}
	return out, err
}

// Enqueued says what became of one task that was to be added. It is one of three: the task was added (Err is nil); another
// task is already there (Err is a [*task.Refused] and matches [task.ErrDuplicate]); or the task was refused (any other Err,
// such as a [*task.FieldError]).
type Enqueued struct {
	ID  string // of the task, or of the task that is already there
	Err error
}

// Added reports whether the task was added.
func (e Enqueued) Added() bool { return e.Err == nil }

// There returns why the task that is already there took the place, or nil if the task was added or refused.
func (e Enqueued) There() *task.Refused {
	var there *task.Refused
	errors.As(e.Err, &there)
	return there
}

// EnqueuedJSON is how an [Enqueued] is written.
type EnqueuedJSON struct {
	ID    string `json:"id" doc:"Of the task, or of the task that is already there."`
	Added bool   `json:"added"`
	// Taken says what the task that is already there holds. Empty if the task was added or refused.
	Taken string `json:"taken,omitempty" enum:"id,unique" doc:"The task is not added, because another one is already there: this is what that one holds."`
	// Refused says why the task was refused.
	Refused *RefusedJSON `json:"refused,omitempty" doc:"The task is not added: why."`
}

// RefusedJSON is why a task was refused.
type RefusedJSON struct {
	Field  string `json:"field,omitempty"`
	Value  string `json:"value,omitempty"`
	Reason string `json:"reason"`
	Hint   string `json:"hint,omitempty"`
}

// Err returns the reason as an error, or nil if nothing was refused.
func (r *RefusedJSON) Err() error {
	switch {
	case r == nil:
		return nil
	case r.Field == "":
		return errors.New(r.Reason)
	}
	return &task.FieldError{Field: r.Field, Value: r.Value, Reason: r.Reason, Hint: r.Hint}
}

// refusedBy writes a reason down; nil if nothing was refused.
func refusedBy(err error) *RefusedJSON {
	var bad *task.FieldError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return &RefusedJSON{bad.Field, bad.Value, bad.Reason, bad.Hint}
	}
	return &RefusedJSON{Reason: err.Error()}
}

// MarshalJSON writes an [EnqueuedJSON].
func (e Enqueued) MarshalJSON() ([]byte, error) {
	out := EnqueuedJSON{ID: e.ID, Added: e.Added()}
	if there := e.There(); there != nil {
		out.Taken = there.By
	} else {
		out.Refused = refusedBy(e.Err)
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads an [EnqueuedJSON]. An answer that is none of the three counts as refused.
func (e *Enqueued) UnmarshalJSON(data []byte) error {
	var in EnqueuedJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*e = Enqueued{ID: in.ID}
	switch r := in.Refused; {
	case in.Added:
	case in.Taken != "":
		e.Err = &task.Refused{By: in.Taken, ID: in.ID}
	case r == nil:
		e.Err = errors.New("not added, and the answer does not say why")
	default:
		e.Err = r.Err()
	}
	return nil
}
