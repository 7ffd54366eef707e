package split

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Producers add tasks to the partitions that they belong to. They are safe for concurrent use.
type Producers struct {
	list    []*producer.Producer
	opened  func(ctx context.Context) (limited []string, err error)
	known   atomic.Pointer[limits] // nil: not asked yet
	opening chan struct{}          // held by the one who asks
	turn    atomic.Uint32          // which partition gets the next task that may lie in any
}

// limits are the types with a limit, as they were at a time.
type limits struct {
	types map[string]bool
	at    time.Time
}

// NewProducers returns the producers of the partitions of a namespace, in order. A namespace that is not split has one. Before they add the
// first task, they call open, which asks Redis for the number of partitions, or splits a namespace that nobody has used yet, and returns
// the types that have a limit: queue.Split, or queue.Unsplit for one.
func NewProducers(open func(ctx context.Context) (limited []string, err error), list []*producer.Producer) *Producers {
	return &Producers{list: list, opened: open, opening: make(chan struct{}, 1)}
}

// Open asks Redis, if nobody has before, whether the namespace has as many partitions as there are producers, and which types have a
// limit. The error matches [queue.ErrPartitions] if it has another number. If the namespace is split, Open asks again when the answer is
// ten seconds old, because another instance may have brought a limit: one caller asks, and the others go on with the old answer.
func (p *Producers) Open(ctx context.Context) error {
	if old := p.known.Load(); old != nil {
		if len(p.list) > 1 && time.Since(old.at) >= keepEvery {
			p.renew(ctx, old)
		}
		return nil
	}
	select {
	case p.opening <- struct{}{}:
		defer func() { <-p.opening }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if p.known.Load() != nil {
		return nil
	}
	return p.ask(ctx)
}

// renew asks again, unless another caller does so now. If no answer comes in time, the old one holds for as long again: a node that is
// away holds up tasks for other nodes only rarely, and not for long. After a caller that gave up before, another asks a second later.
func (p *Producers) renew(ctx context.Context, old *limits) {
	select {
	case p.opening <- struct{}{}:
		defer func() { <-p.opening }()
	default:
		return
	}
	if p.known.Load() != old || ctx.Err() != nil {
		return
	}
	short, done := context.WithTimeout(ctx, renewTime)
	defer done()
	if p.ask(short) != nil {
		next := time.Now()
		if ctx.Err() != nil {
			next = next.Add(renewTime - keepEvery)
		}
		p.known.CompareAndSwap(old, &limits{old.types, next})
	}
}

// Keep asks Redis each ten seconds, until ctx ends, also while nobody calls Open: an outbox has to know of a new limit, and a Redis that
// came back empty has to learn again that the namespace is split. Failures go to the log of the caller.
func (p *Producers) Keep(ctx context.Context, failed func(error)) {
	if len(p.list) == 1 {
		return
	}
	for tick := time.NewTicker(keepEvery); ; {
		select {
		case <-tick.C:
			if err := p.ask(ctx); err != nil && ctx.Err() == nil {
				failed(err)
			}
		case <-ctx.Done():
			tick.Stop()
			return
		}
	}
}

func (p *Producers) ask(ctx context.Context) error {
	types, err := p.opened(ctx)
	if err != nil {
		return err
	}
	limited := map[string]bool{}
	for _, typ := range types {
		limited[typ] = true
	}
	p.known.Store(&limits{limited, time.Now()})
	return nil
}

// Map says where things lie, as far as it is known: until Open, no type has a limit.
func (p *Producers) Map() Map {
	m := Map{Partitions: len(p.list)}
	if known := p.known.Load(); known != nil {
		m.Limited = func(typ string) bool { return known.types[typ] }
	}
	return m
}

// Of is [Map.Of].
func (p *Producers) Of(name string) int { return p.Map().Of(name) }

// ID is [Map.ID].
func (p *Producers) ID(id string) (partition int, ok bool) { return p.Map().ID(id) }

// Turn is [Map.Turn].
func (p *Producers) Turn(ctx context.Context, t *task.Task, id string) (string, error) {
	if err := p.Open(ctx); err != nil {
		return id, err
	}
	return p.Map().Turn(t, id)
}

// Enqueue is that of [producer.Producer], in the partition of the task.
func (p *Producers) Enqueue(ctx context.Context, t *task.Task, opts ...task.Option) (string, error) {
	if t == nil {
		return p.list[0].Enqueue(ctx, t, opts...)
	}
	if err := p.Open(ctx); err != nil {
		return "", err
	}
	if len(p.list) == 1 {
		return p.list[0].Enqueue(ctx, t, opts...)
	}
	at, err := p.at(t.Apply(opts...))
	if err != nil {
		return t.ID, &producer.BatchError{Of: 1, Err: err}
	}
	return p.list[at].Enqueue(ctx, t)
}

// Where returns the partition of a task. See [Map.Task] for what it refuses.
func (p *Producers) Where(t *task.Task) (int, error) {
	at, err := p.at(t)
	return at + 1, err
}

// at returns the index of the producer of a task.
func (p *Producers) at(t *task.Task) (int, error) {
	n, err := p.Map().Task(t)
	if err == nil && n == 0 {
		return p.next(), nil
	}
	return n - 1, err
}

// keepEvery is how long a namespace whose number Redis lost goes without it, and how long a new limit is unknown.
const keepEvery = 10 * time.Second

// renewTime is how long a caller waits for an answer while there is an old one.
const renewTime = time.Second

// next returns the index of the producer whose turn it is.
func (p *Producers) next() int { return int(p.turn.Add(1) % uint32(len(p.list))) }

// dealt is how many tasks of a batch, of those that may lie in any partition, go to one after the other: a call for few costs about as
// much as one for many.
const dealt = 500

// EnqueueAll is that of [producer.Producer]. With more than one partition the tasks of each are a batch of their own, and all batches go
// side by side. Then the result has an entry for each task: the error of one that was not dealt with is that of its partition, and
// EnqueueAll returns those errors too.
func (p *Producers) EnqueueAll(ctx context.Context, tasks []*task.Task) ([]producer.Result, error) {
	if err := p.Open(ctx); err != nil {
		return nil, err
	}
	if len(p.list) == 1 {
		return p.list[0].EnqueueAll(ctx, tasks)
	}
	batches, places := make([][]*task.Task, len(p.list)), make([][]int, len(p.list))
	m, share := p.Map(), min(len(tasks), len(tasks)/len(p.list)+dealt)
	deal, left := 0, 0
	for i, t := range tasks {
		err := p.list[0].CheckNew(t)
		at := 0
		if err == nil {
			at, err = m.Task(t)
		}
		if err != nil {
			return nil, &producer.BatchError{Index: i, Of: len(tasks), Err: err}
		}
		if at--; at < 0 { // it may lie in any
			if left--; left < 0 {
				deal, left = p.next(), dealt-1
			}
			at = deal
		}
		if batches[at] == nil {
			batches[at], places[at] = make([]*task.Task, 0, share), make([]int, 0, share)
		}
		batches[at], places[at] = append(batches[at], t), append(places[at], i)
	}
	out, failed := make([]producer.Result, len(tasks)), make([]error, len(p.list))
	var all sync.WaitGroup
	for at := range batches {
		if len(batches[at]) == 0 {
			continue
		}
		all.Go(func() {
			results, err := p.list[at].EnqueueChecked(ctx, batches[at])
			for i, place := range places[at] {
				if i < len(results) {
					out[place] = results[i]
				} else {
					out[place] = producer.Result{ID: batches[at][i].ID, Err: err}
				}
			}
			if err != nil {
				failed[at] = In(at+1, err)
			}
		})
	}
	all.Wait()
	return out, errors.Join(failed...)
}

// CheckSchedule refuses a schedule whose tasks would not lie where those of their type do, if that has a limit.
func (p *Producers) CheckSchedule(ctx context.Context, s *producer.Schedule) error {
	if err := p.Open(ctx); err != nil || len(p.list) == 1 {
		return err
	}
	m := p.Map()
	if m.limited(s.Task) == "" || m.Of(s.Task) == m.Of(s.Name) {
		return nil
	}
	return &task.FieldError{
		Field: "task", Value: s.Task, Reason: fmt.Sprintf("has a limit, so all its tasks lie in partition %d of %d, and schedule %q in partition %d", m.Of(s.Task), len(p.list), s.Name, m.Of(s.Name)),
		Hint: "give the schedule a type of its own, and see overlap for how many of its runs may go on at once; or give it another name",
	}
}

// In names the partition that an error is of.
func In(partition int, err error) error { return fmt.Errorf("partition %d: %w", partition, err) }
