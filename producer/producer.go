package producer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/onbeat/onbeat/queue"
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
	q   *queue.Queue
	cfg Config
}

// New returns a producer.
func New(q *queue.Queue, cfg Config) *Producer { return &Producer{q: q, cfg: cfg} }

// Result is what became of one task of a batch.
type Result struct {
	// ID names the task, or the one that stands in its place.
	ID string
	// Err is nil if the task was added. It matches [queue.ErrDuplicate] if it was not, because its ID or unique key is
	// taken.
	Err error
}

// Enqueue adds one task, shaped by options, and returns its ID. The error matches [task.ErrInvalid] for a task that
// could not be enqueued, [queue.ErrDuplicate] if its ID or unique key is taken (the ID returned is the one that
// stands), [queue.ErrFull] if Redis has no memory for it: nothing was added. After [queue.ErrUnreachable] it may have
// been added; enqueueing the same ID again is refused if it was.
func (p *Producer) Enqueue(ctx context.Context, t *task.Task, opts ...task.Option) (string, error) {
	results, err := p.EnqueueAll(ctx, []*task.Task{t.Apply(opts...)})
	if err != nil {
		return t.ID, err
	}
	return results[0].ID, results[0].Err
}

// EnqueueAll adds tasks, thousands a round trip. Every task is checked before the first is added: a bad one is an
// error of type [*BatchError] and nothing is written. Tasks without an ID get one, in place. The result has an entry
// for each task that was dealt with: after an error, fewer than tasks.
//
// Batches over [queue.MaxBatch] are added part by part, each whole or not at all.
func (p *Producer) EnqueueAll(ctx context.Context, tasks []*task.Task) ([]Result, error) {
	now := time.Now()
	look := false
	for i, t := range tasks {
		if err := p.Check(t); err != nil {
			return nil, &BatchError{Index: i, Of: len(tasks), Err: err}
		}
	}
	for _, t := range tasks {
		if t.ID == "" {
			t.ID = task.NewID(now)
		} else {
			look = true
			if t.Keep == 0 {
				t.Keep = task.DefaultKeepByID
			}
		}
		if t.Created.IsZero() {
			t.Created = now.Truncate(time.Millisecond)
		}
	}
	results := make([]Result, 0, len(tasks))
	for tries := 0; len(results) < len(tasks); tries++ {
		rest := tasks[len(results):]
		refused, added, err := p.q.Enqueue(ctx, rest, look)
		for i := range added {
			r := Result{ID: rest[i].ID, Err: refused[i]}
			if refused[i] != nil {
				r.ID = standing(refused[i], r.ID)
			}
			results = append(results, r)
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

// standing is the ID of the task that a refused one met, or its own.
func standing(refused error, id string) string {
	var taken *queue.Refused
	if errors.As(refused, &taken) {
		return taken.ID
	}
	return id
}

// Check refuses a task that could not be enqueued.
func (p *Producer) Check(t *task.Task) error {
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
	if n >= tries || !errors.Is(err, queue.ErrBusy) && !queue.NotSent(err) {
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
