package producer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/task"
)

// Config tunes a Producer. The zero value is ready to use.
type Config struct {
	// Limits bound what a task may hold.
	Limits task.Limits
	// Check, if set, refuses a payload that the type's handler could not use. It must accept types that it does not know.
	// It gets the type, the payload and its secret paths, and changes none of them.
	Check func(t *task.Task) error
	// CheckPlace, if set, refuses a schedule that is planned, applied, reverted or restored, and whose tasks would lie in the wrong partition.
	// It may ask Redis.
	CheckPlace func(ctx context.Context, s *Schedule) error
	// Secret are, by type, the secret paths of payloads: each task that is added gets those of its type.
	Secret map[string][]string
	// NewID makes the ID of a task that has none. Default: [task.NewID]. Other IDs may be for one partition of a namespace.
	NewID func(now time.Time) string
	// TracerProvider makes a span of each call that adds tasks. Default nil: none.
	TracerProvider trace.TracerProvider
}

// Producer is a TaskProducer: it adds tasks. It is safe for concurrent use.
type Producer struct {
	q      *queue.Queue
	cfg    Config
	tracer *tracing.Tracer // nil: none
	group  group           // of single calls
}

// New returns a producer of a namespace. It does not talk to Redis. It refuses an invalid namespace with a [*task.FieldError].
func New(rdb redis.UniversalClient, namespace string, cfg Config) (*Producer, error) {
	q, err := queue.Of(rdb, namespace)
	if err != nil {
		return nil, err
	}
	if cfg.NewID == nil {
		cfg.NewID = task.NewID
	}
	return &Producer{q: q, cfg: cfg, tracer: tracing.New(cfg.TracerProvider, namespace), group: group{q: q}}, nil
}

// Result is the outcome of one task of a batch.
type Result struct {
	// ID is the ID of the task, or of the task that took its place.
	ID string
	// Err is nil if the task was added. It matches [task.ErrDuplicate] if the task was refused because its ID or unique
	// key is taken.
	Err error
}

// Enqueue adds one task, with the options applied, and returns its ID. Concurrent calls share round trips; a single call is
// not delayed for that.
//
// The error matches [task.ErrInvalid] if the task is invalid, [task.ErrDuplicate] if its ID or unique key is taken
// (Enqueue then returns the ID of the task that holds it), and [task.ErrFull] if Redis has no memory for it. In these
// cases nothing was added. After [task.ErrUnreachable] the task may have been added: enqueue the same ID again, which is
// refused if it was. An error that matches that of ctx, and not [task.ErrUnreachable], says that ctx ended before the task
// was sent.
func (p *Producer) Enqueue(ctx context.Context, t *task.Task, opts ...task.Option) (string, error) {
	if t == nil { // the options would panic
		return "", &BatchError{Of: 1, Err: errNilTask}
	}
	if err := CheckNames(t.Apply(opts...)); err != nil {
		return t.ID, &BatchError{Of: 1, Err: err}
	}
	return p.enqueue(ctx, t)
}

// enqueue is Enqueue that also accepts reserved names.
func (p *Producer) enqueue(ctx context.Context, t *task.Task) (string, error) {
	if err := p.Check(t); err != nil {
		return t.ID, &BatchError{Of: 1, Err: err}
	}
	t.Secret = p.Secret(t.Type, t.Secret)
	look := p.named(t, time.Now())
	if p.tracer != nil {
		return p.traced(ctx, t, look)
	}
	return p.add(ctx, t, look)
}

// add adds a checked task.
func (p *Producer) add(ctx context.Context, t *task.Task, look bool) (string, error) {
	for tries := 0; ; tries++ {
		refused, err := p.group.add(ctx, t, look)
		if err == nil {
			return existing(refused, t.ID), refused
		}
		if !p.again(ctx, err, tries) {
			return t.ID, err
		}
	}
}

// EnqueueAll adds tasks, thousands a round trip. It checks every task before it adds the first: if one is invalid, the
// error is a [*BatchError] and nothing is written. It sets the ID of each task that has none. The result has an entry for
// each task that was dealt with; after an error, these are fewer than the tasks.
//
// A batch of more than 1,000 tasks is added in parts, each whole or not at all.
func (p *Producer) EnqueueAll(ctx context.Context, tasks []*task.Task) ([]Result, error) {
	for i, t := range tasks {
		if err := CheckNames(t); err != nil {
			return nil, &BatchError{Index: i, Of: len(tasks), Err: err}
		}
	}
	return p.enqueueAll(ctx, tasks, p.q.Enqueue)
}

// EnqueueChecked is EnqueueAll for tasks that [Producer.CheckNew] has accepted, of this namespace: it checks none of them again.
func (p *Producer) EnqueueChecked(ctx context.Context, tasks []*task.Task) ([]Result, error) {
	return p.enqueueChecked(ctx, tasks, p.q.Enqueue)
}

// adding is one way to add tasks: that of [queue.Queue.Enqueue].
type adding func(ctx context.Context, tasks []*task.Task, look bool) (refused []error, added int, err error)

// enqueueAll is EnqueueAll that also accepts reserved names.
func (p *Producer) enqueueAll(ctx context.Context, tasks []*task.Task, add adding) ([]Result, error) {
	for i, t := range tasks {
		if err := p.Check(t); err != nil {
			return nil, &BatchError{Index: i, Of: len(tasks), Err: err}
		}
	}
	return p.enqueueChecked(ctx, tasks, add)
}

func (p *Producer) enqueueChecked(ctx context.Context, tasks []*task.Task, add adding) ([]Result, error) {
	now := time.Now()
	look := false
	for _, t := range tasks {
		t.Secret = p.Secret(t.Type, t.Secret)
		look = p.named(t, now) || look
	}
	if p.tracer != nil && len(tasks) > 0 {
		return p.tracedAll(ctx, tasks, look, add)
	}
	return p.addAll(ctx, tasks, look, add)
}

// addAll adds checked tasks.
func (p *Producer) addAll(ctx context.Context, tasks []*task.Task, look bool, add adding) ([]Result, error) {
	return p.inParts(ctx, tasks, func(rest []*task.Task) ([]error, int, error) { return add(ctx, rest, look) })
}

// inParts calls add until it has dealt with all tasks, or fails in a way that another call would not mend.
func (p *Producer) inParts(ctx context.Context, tasks []*task.Task, add func(rest []*task.Task) (refused []error, added int, err error)) ([]Result, error) {
	results := make([]Result, 0, len(tasks))
	for tries := 0; len(results) < len(tasks); tries++ {
		rest := tasks[len(results):]
		refused, added, err := add(rest)
		for i := range added {
			results = append(results, Result{ID: existing(refused[i], rest[i].ID), Err: refused[i]})
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

// named fills in what a task needs to be added. It reports whether the caller chose the ID: such an ID may be taken.
func (p *Producer) named(t *task.Task, now time.Time) bool {
	if t.Created.IsZero() {
		t.Created = now.Truncate(time.Millisecond)
	}
	if t.ID == "" {
		t.ID = p.cfg.NewID(now)
		return false
	}
	if t.Keep == 0 {
		t.Keep = task.DefaultKeepByID
	}
	return true
}

// existing returns the ID of the task that a refused task met, or else the task's own.
func existing(refused error, id string) string {
	if refused == nil {
		return id
	}
	var taken *task.Refused
	if errors.As(refused, &taken) {
		return taken.ID
	}
	return id
}

// Check refuses a task that Enqueue would refuse.
func (p *Producer) Check(t *task.Task) error {
	if t == nil {
		return errNilTask
	}
	if err := t.Validate(p.cfg.Limits); err != nil {
		return err
	}
	encrypted := t.Sealed != nil && t.Payload == nil // and its key is not here
	switch {
	case p.cfg.Check == nil || encrypted:
		return nil
	case len(p.cfg.Secret[t.Type]) == 0: // as a rule; a copy of every task is a quarter of what a batch costs
		return p.cfg.Check(t)
	}
	return p.cfg.Check(&task.Task{Type: t.Type, Payload: t.Payload, Secret: p.Secret(t.Type, t.Secret)})
}

// PayloadLimit is the largest payload that Check takes, in bytes.
func (p *Producer) PayloadLimit() int { return cmp.Or(p.cfg.Limits.Payload, task.DefaultPayloadLimit) }

// CheckNew refuses a task that a caller may not add: Check, and the names that are reserved for the dispatcher.
func (p *Producer) CheckNew(t *task.Task) error {
	if err := CheckNames(t); err != nil {
		return err
	}
	return p.Check(t)
}

// Secret returns the secret paths of a payload: its own and those of its type.
func (p *Producer) Secret(typ string, own []string) []string {
	return secret.Join(own, p.cfg.Secret[typ])
}

// tries is how often a call that surely changed nothing is sent, over about two seconds.
const tries = 6

// again waits and reports whether to send the call again: only if it surely changed nothing.
func (p *Producer) again(ctx context.Context, err error, n int) bool {
	if n >= tries || !errors.Is(err, task.ErrBusy) && !store.NotSent(err) {
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

// BatchError says which task of a batch was refused. It unwraps to the reason.
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
