package producer

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// gate is a hook that holds scripts until they are let through, so that a test knows which calls are on the way and which
// wait.
type gate struct {
	calls atomic.Int32
	held  chan struct{}          // one for each script that is held
	pass  chan struct{}          // lets one through; closed, all
	fail  func(call int32) error // instead of passing it, if not nil; counted from 1
}

func newGate() *gate { return &gate{held: make(chan struct{}, 1000), pass: make(chan struct{})} }

func (g *gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd) // the commands that begin a connection
		}
		call := g.calls.Add(1)
		g.held <- struct{}{}
		<-g.pass
		if g.fail != nil {
			if err := g.fail(call); err != nil {
				cmd.SetErr(err)
				return err
			}
		}
		return next(ctx, cmd)
	}
}

// crowd is a producer whose calls are held at a gate. As many calls as go alone are held there already: further calls wait.
type crowd struct {
	*world
	gate *gate
	over []chan outcome
}

type outcome struct {
	id  string
	err error
}

func newCrowd(t testing.TB, rdb *redis.Client) *crowd {
	t.Helper()
	return crowdIn(t, rdb, testredis.Namespace(t))
}

func crowdIn(t testing.TB, rdb *redis.Client, ns string) *crowd {
	t.Helper()
	c := &crowd{world: worldIn(t, rdb, ns), gate: newGate()}
	_, err := c.p.Enqueue(t.Context(), task.New("job", nil, task.ID("first"))) // the script is known
	must(t, err)
	rdb.AddHook(c.gate)
	for range abreast {
		c.enqueue(t.Context(), task.New("job", nil))
		c.holds()
	}
	return c
}

// holds returns when one more call has come to the gate.
func (c *crowd) holds() {
	c.Helper()
	soon(c, c.gate.held)
}

// soon receives, or fails the test.
func soon[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(patience):
		t.Fatal("it hangs")
	}
	return v
}

// enqueue enqueues from a goroutine.
func (c *crowd) enqueue(ctx context.Context, t *task.Task) chan outcome {
	over := make(chan outcome, 1)
	c.over = append(c.over, over)
	go func() {
		id, err := c.p.Enqueue(ctx, t)
		over <- outcome{id, err}
	}()
	return over
}

// joins enqueues, and returns when the task waits.
func (c *crowd) joins(ctx context.Context, t *task.Task) chan outcome {
	c.Helper()
	n := c.waiting()
	over := c.enqueue(ctx, t)
	testredis.Eventually(c, patience, func() bool { return c.waiting() == n+1 }, "%d calls wait", n+1)
	return over
}

func (c *crowd) waiting() int {
	c.p.group.mu.Lock()
	defer c.p.group.mu.Unlock()
	return len(c.p.group.waiting)
}

// departs lets the calls that went alone through. It returns when the waiting calls are on their way, and held.
func (c *crowd) departs() {
	c.Helper()
	for range abreast {
		c.gate.pass <- struct{}{}
	}
	c.holds()
}

// all opens the gate, and returns what everybody got, in the order in which they came.
func (c *crowd) all() (list []outcome) {
	c.Helper()
	close(c.gate.pass)
	for _, over := range c.over {
		list = append(list, soon(c, over))
	}
	return list
}

func (c *crowd) there(id string) bool {
	return c.rdb.HExists(context.Background(), c.q.Keys().Tasks, id).Val()
}

// wantNotAdded fails unless an error says that the context ended and nothing was added.
func wantNotAdded(t testing.TB, err, ctx error) {
	t.Helper()
	if !errors.Is(err, ctx) || errors.Is(err, task.ErrUnreachable) || !strings.Contains(err.Error(), "nothing was added") {
		t.Errorf("%v", err)
	}
}
