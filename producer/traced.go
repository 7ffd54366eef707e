package producer

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// traced is add within a span, which the task carries along.
func (p *Producer) traced(ctx context.Context, t *task.Task, look bool) (string, error) {
	ctx, span := p.tracer.Enqueue(ctx, []*task.Task{t})
	id, err := p.add(ctx, t, look)
	failure := err
	if errors.Is(err, task.ErrDuplicate) {
		span.Duplicates(1)
		failure = nil
	}
	span.End(failure)
	return id, err
}

// tracedAll is addAll within a span, which all tasks carry along.
func (p *Producer) tracedAll(ctx context.Context, tasks []*task.Task, look bool, add adding) ([]Result, error) {
	ctx, span := p.tracer.Enqueue(ctx, tasks)
	results, err := p.addAll(ctx, tasks, look, add)
	duplicates, failure := 0, err
	for i := range results {
		switch bad := results[i].Err; {
		case errors.Is(bad, task.ErrDuplicate):
			duplicates++
		case bad != nil && failure == nil:
			failure = bad
		}
	}
	span.Duplicates(duplicates)
	span.End(failure)
	return results, err
}

// sendTraced is send within a span, to which the runs of the slots that it pushes will have a link.
func (t *term) sendTraced(ctx context.Context, steps []queue.Step) (now time.Time, dropped int, moved []int, err error) {
	slots := 0
	for i := range steps {
		slots += len(steps[i].Push)
	}
	if t.tracer == nil || slots == 0 {
		return t.send(ctx, steps)
	}
	ctx, span := t.tracer.Push(ctx, t.term.Instance, slots)
	if link := span.Link(); link != "" {
		for i := range steps {
			for _, p := range steps[i].Push {
				p.Task.Trace = link
			}
		}
	}
	now, dropped, moved, err = t.send(ctx, steps)
	span.End(err)
	return now, dropped, moved, err
}
