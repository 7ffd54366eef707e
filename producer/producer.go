package producer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

// Config tunes a Producer. The zero value is ready to use.
type Config struct {
	// Limits bound what a task may hold.
	Limits task.Limits
	// Check, if set, refuses a payload that a type's handler could not use. Types it does not know pass.
	Check func(typ string, payload []byte) error
}

// Producer is a TaskProducer: it adds tasks. It is safe for concurrent use.
type Producer struct {
	q     *queue.Queue
	cfg   Config
	group group // of single calls
}

// New returns a producer.
func New(q *queue.Queue, cfg Config) *Producer { return &Producer{q: q, cfg: cfg, group: group{q: q}} }

// Result is what became of one task of a batch.
type Result struct {
	// ID names the task, or the one that stands in its place.
	ID string
	// Err is nil if the task was added. It matches [queue.ErrDuplicate] if it was not, because its ID or unique key is
	// taken.
	Err error
}

// Enqueue adds one task, shaped by options, and returns its ID. Many goroutines that call it at the same time share
// round trips; one by itself is not delayed for that.
//
// The error matches [task.ErrInvalid] for a task that could not be enqueued, [queue.ErrDuplicate] if its ID or unique
// key is taken (the ID returned is the one that stands), [store.ErrFull] if Redis has no memory for it: nothing was
// added. After [store.ErrUnreachable] it may have been added; enqueueing the same ID again is refused if it was. An error
// that matches that of ctx, and not [store.ErrUnreachable], says that ctx ended before the task was sent.
func (p *Producer) Enqueue(ctx context.Context, t *task.Task, opts ...task.Option) (string, error) {
	if t == nil { // the options would panic
		return "", &BatchError{Of: 1, Err: errNilTask}
	}
	if err := checkNames(t.Apply(opts...)); err != nil {
		return t.ID, &BatchError{Of: 1, Err: err}
	}
	return p.enqueue(ctx, t)
}

// enqueue is Enqueue for the dispatcher's own names too.
func (p *Producer) enqueue(ctx context.Context, t *task.Task) (string, error) {
	if err := p.Check(t); err != nil {
		return t.ID, &BatchError{Of: 1, Err: err}
	}
	look := named(t, time.Now())
	for tries := 0; ; tries++ {
		refused, err := p.group.add(ctx, t, look)
		if err == nil {
			return standing(refused, t.ID), refused
		}
		if !p.again(ctx, err, tries) {
			return t.ID, err
		}
	}
}

// EnqueueAll adds tasks, thousands a round trip. Every task is checked before the first is added: a bad one is an
// error of type [*BatchError] and nothing is written. Tasks without an ID get one, in place. The result has an entry
// for each task that was dealt with: after an error, fewer than tasks.
//
// Batches over [queue.MaxBatch] are added part by part, each whole or not at all.
func (p *Producer) EnqueueAll(ctx context.Context, tasks []*task.Task) ([]Result, error) {
	for i, t := range tasks {
		if err := checkNames(t); err != nil {
			return nil, &BatchError{Index: i, Of: len(tasks), Err: err}
		}
	}
	return p.enqueueAll(ctx, tasks)
}

// enqueueAll is EnqueueAll for the dispatcher's own names too.
func (p *Producer) enqueueAll(ctx context.Context, tasks []*task.Task) ([]Result, error) {
	now := time.Now()
	look := false
	for i, t := range tasks {
		if err := p.Check(t); err != nil {
			return nil, &BatchError{Index: i, Of: len(tasks), Err: err}
		}
	}
	for _, t := range tasks {
		look = named(t, now) || look
	}
	results := make([]Result, 0, len(tasks))
	for tries := 0; len(results) < len(tasks); tries++ {
		rest := tasks[len(results):]
		refused, added, err := p.q.Enqueue(ctx, rest, look)
		for i := range added {
			results = append(results, Result{ID: standing(refused[i], rest[i].ID), Err: refused[i]})
		}
		if added > 0 {
			tries = 0
		}
		if err != nil && !p.again(ctx, err, tries) {
			return results, err
		}
	}
	return results, nil
}

// named gives a task what it needs to be added, and reports whether its ID was the caller's choice: it may be taken.
func named(t *task.Task, now time.Time) bool {
	if t.Created.IsZero() {
		t.Created = now.Truncate(time.Millisecond)
	}
	if t.ID == "" {
		t.ID = task.NewID(now)
		return false
	}
	if t.Keep == 0 {
		t.Keep = task.DefaultKeepByID
	}
	return true
}

// standing is the ID of the task that a refused one met, or its own.
func standing(refused error, id string) string {
	if refused == nil {
		return id
	}
	var taken *queue.Refused
	if errors.As(refused, &taken) {
		return taken.ID
	}
	return id
}

// Check refuses a task that could not be enqueued.
func (p *Producer) Check(t *task.Task) error {
	if t == nil {
		return errNilTask
	}
	if err := t.Validate(p.cfg.Limits); err != nil {
		return err
	}
	if p.cfg.Check != nil {
		return p.cfg.Check(t.Type, t.Payload)
	}
	return nil
}

// tries is how often a call that surely changed nothing is made again, over about two seconds.
const tries = 6

// again waits and reports whether to try again: only if the call surely did not happen.
func (p *Producer) again(ctx context.Context, err error, n int) bool {
	if n >= tries || !errors.Is(err, store.ErrBusy) && !store.NotSent(err) {
		return false
	}
	d := 30 * time.Millisecond << n
	select {
	case <-time.After(d/2 + rand.N(d)):
		return true
	case <-ctx.Done():
		return false
	}
}

// BatchError says which task of a batch was refused. It unwraps to why.
type BatchError struct {
	Index int // from 0
	Of    int
	Err   error
}

func (e *BatchError) Error() string {
	if e.Of == 1 {
		return e.Err.Error()
	}
	return fmt.Sprintf("task %d of %d: %v", e.Index+1, e.Of, e.Err)
}

func (e *BatchError) Unwrap() error { return e.Err }
