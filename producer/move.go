package producer

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// Move is [Producer.EnqueueAll] for tasks that another store holds too: Redis remembers which of them it got. The caller has
// checked each with [Producer.CheckNew]. A task that was moved before has an error that matches [task.ErrDuplicate], by "moved".
//
// Began is a moment, by the clock of Redis, before the caller knew that no other caller moves these tasks. Marks has a name for each
// task, which the other store gave it and gives no other.
//
// The tasks keep the trace that they have: Move is not a part of the work that they belong to.
func (p *Producer) Move(ctx context.Context, tasks []*task.Task, began time.Time, marks map[*task.Task]string) ([]Result, error) {
	for _, t := range tasks {
		t.Secret = p.Secret(t.Type, t.Secret)
		p.named(t, began)
	}
	return p.inParts(ctx, tasks, func(rest []*task.Task) ([]error, int, error) {
		return p.q.Move(ctx, rest, queue.Moving{Began: began, Marks: marks})
	})
}
