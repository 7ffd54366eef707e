package producer

import (
	"context"
	"runtime"
	"slices"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// batch is the calls that share a round trip, and their tasks.
type batch struct {
	calls []*call
	tasks []*task.Task
}

// shuttle sends the waiting calls, a batch a round trip, until none waits.
func (g *group) shuttle() {
	for g.take() {
		g.batch.send(g.q)
		// Callers that have just been answered may have more tasks, and share the next batch if they may run first. Twice,
		// because an idle thread brings this goroutine back at once.
		runtime.Gosched()
		runtime.Gosched()
	}
}

// take fills the batch with the calls that have waited longest. If none waits, it ends the shuttle.
func (g *group) take() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := fitting(g.waiting)
	if n == 0 {
		g.shuttles = false
		return false
	}
	g.batch.calls = append(g.batch.calls, g.waiting[:n]...)
	g.waiting = slices.Delete(g.waiting, 0, n)
	return true
}

// fitting returns how many of the calls fit into one batch. All of a batch are of one actor, whose name Redis notes with new lanes.
func fitting(waiting []*call) int {
	size, by := 0, ""
	for i, c := range waiting {
		actor := queue.Actor(c.ctx)
		if i == 0 {
			by = actor
		}
		size += len(c.task.Payload)
		if i == queue.MaxBatch || size > groupBytes || actor != by {
			return i
		}
	}
	return len(waiting)
}

// send adds all tasks of a batch or none, answers every call, and empties the batch.
func (b *batch) send(q *queue.Queue) {
	look := false
	for _, c := range b.calls {
		b.tasks = append(b.tasks, &c.task)
		look = look || c.look // for an ID that was made for its task there is nothing to find
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.calls[0].ctx), sharedTimeout)
	refused, _, err := q.Enqueue(ctx, b.tasks, look)
	cancel()
	for i, c := range b.calls {
		a := answer{err: err}
		if err == nil {
			a.refused = refused[i]
		}
		c.answer <- a
	}
	clear(b.calls)
	clear(b.tasks)
	b.calls, b.tasks = b.calls[:0], b.tasks[:0]
}
