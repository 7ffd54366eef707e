package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

const (
	// abreast is how many calls of one task each are on their way before others wait.
	abreast = 2
	// groupBytes bounds the payloads of one shared call: a long one keeps everybody waiting.
	groupBytes = 256 << 10
	// aloneBytes is the largest payload that shares a call. A larger one would cost its neighbours time, and for one
	// that is far too large Redis hangs up on all.
	aloneBytes = 16 << 10
	// sharedTimeout ends a shared call that the client's own timeouts do not, because no one caller's context may.
	sharedTimeout = 30 * time.Second
)

// group lets concurrent calls that add one task each share round trips. A call that finds less than [abreast] others on
// their way leaves at once, on its caller's goroutine: nobody waits for company. Those who come later wait, and leave
// together as soon as one lands.
//
// One shared call is on its way at a time: two of half the size cost Redis and the client a quarter more a task, and
// are no faster where the two have two cores between them.
type group struct {
	q *queue.Queue

	mu       sync.Mutex
	alone    int     // on their way
	shuttles bool    // shared calls are being made
	waiting  []*call // only while somebody is on the way

	batch batch     // of the shuttle
	idle  sync.Pool // calls that were answered; not shared by groups, whose channels a synctest bubble may own
}

// call is one caller's wish to add a task, and the answer to it. It has a copy of the task: a caller whose context ends
// goes, and may do with its own what it likes while the call is still being sent.
type call struct {
	ctx    context.Context // for its values
	task   task.Task
	look   bool
	answer chan answer // has room for one, so that nobody waits for a caller that has gone
}

// answer is why the task was refused, or why it is not known what became of it.
type answer struct{ refused, err error }

// add adds a task that was checked and has its ID. What fails a shared call fails all of it, but for a denied key: that
// is found before anything is written, and each goes again by itself.
//
// The end of the context while the task waits takes it back, with an
// error that matches only that of the context; on the way it may have been added, and the error matches
// [store.ErrUnreachable] too.
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
	if errors.Is(err, store.ErrDenied) { // before the script ran, and perhaps for a queue that only a neighbour uses
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

// forget takes back a call that nobody else knows any more.
func (g *group) forget(c *call) {
	c.ctx, c.task = nil, task.Task{Payload: c.task.Payload[:0]}
	g.idle.Put(c)
}

// board returns nil if there is room to leave at once, else a call that waits.
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

// leave takes a call back, if it still waits.
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
	case a := <-c.answer: // it came at the same moment
		return a.refused, a.err
	default:
		return nil, fmt.Errorf("enqueue: %w: no answer yet: %w", store.ErrUnreachable, ctx.Err())
	}
}

func notAdded(err error) error { return fmt.Errorf("enqueue: nothing was added: %w", err) }

// land ends a call that left at once. Those who have come meanwhile leave now, on a goroutine of their own: the caller
// has its answer, and goes.
func (g *group) land() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.alone--
	if len(g.waiting) > 0 && !g.shuttles {
		g.shuttles = true
		go g.shuttle()
	}
}
