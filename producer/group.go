package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

const (
	// abreast is how many calls of one task each are under way before others wait.
	abreast = 2
	// groupBytes bounds the payloads of one shared call, because a long call delays all its callers.
	groupBytes = 256 << 10
	// aloneBytes is the largest payload that shares a call. A larger one would delay the other calls, and if one is far too
	// large, Redis hangs up on all of them.
	aloneBytes = 16 << 10
	// sharedTimeout ends a shared call if the client's timeouts do not. The context of a single caller may not end it.
	sharedTimeout = 30 * time.Second
)

// group lets concurrent calls that add one task each share round trips. A call that finds fewer than [abreast] others under
// way is sent at once, on its caller's goroutine: it does not wait for company. Later calls wait, and are sent together as
// soon as one returns.
//
// One shared call is under way at a time. Two of half the size cost Redis and the client a quarter more a task, and are no
// faster where Redis and the client have two cores between them.
type group struct {
	q *queue.Queue

	mu       sync.Mutex
	alone    int     // under way
	shuttles bool    // shared calls are being made
	waiting  []*call // empty while no call is under way

	batch batch     // of the shuttle
	idle  sync.Pool // calls that were answered; groups do not share them, as their channels may belong to a synctest bubble
}

// call is one caller's request to add a task, and its answer. It has a copy of the task: a caller whose context ends
// returns, and may change its own task while the call is still being sent.
type call struct {
	ctx    context.Context // for its values
	task   task.Task
	look   bool
	answer chan answer // has room for one answer, so that the sender does not block when the caller has gone
}

// answer says why the task was refused, or why the outcome is unknown.
type answer struct{ refused, err error }

// add adds a task that was checked and has its ID. An error fails all calls of a shared call, with one exception: a denied
// key is found before anything is written, so each call is sent again by itself.
//
// If the context ends while the task waits, add takes the task back, and the error matches only the context's. If it
// ends while the call is under way, the task may have been added, and the error matches [task.ErrUnreachable] too.
func (g *group) add(ctx context.Context, t *task.Task, look bool) (refused, err error) {
	if err := ctx.Err(); err != nil {
		return nil, notAdded(err)
	}
	if len(t.Payload) > aloneBytes {
		return g.one(ctx, t, look)
	}
	c := g.board(ctx, t, look)
	if c == nil {
		defer g.land()
		return g.one(ctx, t, look)
	}
	select {
	case a := <-c.answer:
		refused, err = a.refused, a.err
		g.forget(c)
	case <-ctx.Done():
		return g.leave(ctx, c)
	}
	if errors.Is(err, task.ErrDenied) { // before the script ran, and perhaps for a queue that only another call uses
		return g.one(ctx, t, look)
	}
	return refused, err
}

// one adds a task by a call of its own.
func (g *group) one(ctx context.Context, t *task.Task, look bool) (refused, err error) {
	list, _, err := g.q.Enqueue(ctx, []*task.Task{t}, look)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// call copies a task into a call.
func (g *group) call(ctx context.Context, t *task.Task, look bool) *call {
	c, ok := g.idle.Get().(*call)
	if !ok {
		c = &call{answer: make(chan answer, 1)}
	}
	payload := append(c.task.Payload[:0], t.Payload...)
	c.ctx, c.task, c.look = ctx, *t, look
	c.task.Payload = payload
	return c
}

// forget puts a call back into the pool. No other goroutine may still hold it.
func (g *group) forget(c *call) {
	c.ctx, c.task = nil, task.Task{Payload: c.task.Payload[:0]}
	g.idle.Put(c)
}

// board returns nil if the call may be sent at once, else a call that waits.
func (g *group) board(ctx context.Context, t *task.Task, look bool) *call {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.alone < abreast && !g.shuttles {
		g.alone++
		return nil
	}
	c := g.call(ctx, t, look)
	g.waiting = append(g.waiting, c)
	return c
}

// leave takes a call back if it still waits.
func (g *group) leave(ctx context.Context, c *call) (refused, err error) {
	g.mu.Lock()
	i := slices.Index(g.waiting, c)
	if i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.mu.Unlock()
	if i >= 0 {
		g.forget(c)
		return nil, notAdded(ctx.Err())
	}
	select {
	case a := <-c.answer: // the answer came at the same moment
		return a.refused, a.err
	default:
		return nil, fmt.Errorf("enqueue: %w: no answer yet: %w", task.ErrUnreachable, ctx.Err())
	}
}

func notAdded(err error) error { return fmt.Errorf("enqueue: nothing was added: %w", err) }

// land ends a call that was sent at once. The calls that have come meanwhile are sent now, on a goroutine of their own,
// because this caller has its answer and returns.
func (g *group) land() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alone--
	if len(g.waiting) > 0 && !g.shuttles {
		g.shuttles = true
		go g.shuttle()
	}
}
