package producer

import (
	"context"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// Move is [Producer.EnqueueAll] for tasks that another store holds too: see [queue.Queue.Move]. The caller has
// checked each with [Producer.CheckNew]. A task that was moved before has an error that matches [queue.ErrDuplicate], by "moved".
//
// The tasks keep the trace that they have: Move is not a part of the work that they belong to.
func (p *Producer) Move(ctx context.Context, tasks []*task.Task, m queue.Moving) ([]Result, error) {
	for _, t := range tasks {
		t.Secret = p.Secret(t.Type, t.Secret)
		named(t, m.Began)
	}
	return p.inParts(ctx, tasks, func(rest []*task.Task) ([]error, int, error) { return p.q.Move(ctx, rest, m) })
}
