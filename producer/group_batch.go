package producer

import (
	"context"
	"runtime"
	"slices"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/task"
)

// batch is the calls that share a round trip, and their tasks.
type batch struct {
	calls []*call
	tasks []*task.Task
}

// shuttle sends those who wait, a batch a round trip, until nobody does.
func (g *group) shuttle() {
	for g.take() {
		g.batch.send(g.q)
		// Those who have just been answered may have more, and leave with the others if they are let run first. Twice,
		// because an idle thread brings this goroutine back at once.
		runtime.Gosched()
		runtime.Gosched()
	}
}

// take fills the batch with those who have waited longest, or ends the shuttle if nobody does.
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

// fitting is how many of the calls go into one batch.
func fitting(waiting []*call) int {
	size := 0
	for i, c := range waiting {
		size += len(c.task.Payload)
		if i == queue.MaxBatch || size > groupBytes {
			return i
		}
	}
	return len(waiting)
}

// send adds all of a batch or nothing, tells everyone, and empties it.
func (b *batch) send(q *queue.Queue) {
	look := false
	for _, c := range b.calls {
		b.tasks = append(b.tasks, &c.task)
		look = look || c.look // of an ID that was made for its task nothing is found
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
