package consumer

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// claimHeld keeps the reply of the first call that claims a task until it is let go.
type claimHeld struct {
	claimed, letGo chan struct{}
}

func (h *claimHeld) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *claimHeld) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *claimHeld) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if r, ok := cmd.(interface{ Slice() ([]any, error) }); ok && err == nil {
			// The reply of a cycle that claimed: its first value is in microseconds, and the values after the ninth are claims.
			values, _ := r.Slice()
			if len(values) <= 9 {
				return nil
			}
			if now, ok := values[0].(int64); ok && now > 1e15 {
				close(h.claimed)
				<-h.letGo
			}
		}
		return err
	}
}

// A request to cancel a run that comes before the answer that claimed it is not lost.
func TestCancel_beforeTheClaimIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	rdb := redis.NewClient(testredis.Real(t).Options())
	t.Cleanup(func() { _ = rdb.Close() })
	h := &claimHeld{make(chan struct{}), make(chan struct{})}
	rdb.AddHook(h)
	ended := make(chan error, 1)
	n := w.start(one(t, func(ctx context.Context, _ *task.Task) error {
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	}), over(rdb), lease(time.Minute)) // its heartbeats, which repeat the request, are too far apart to help
	letGo := sync.OnceFunc(func() { close(h.letGo) })
	t.Cleanup(letGo) // before the instance is stopped, which waits for the reply
	w.leads(n)
	w.add(job("x"))
	<-h.claimed
	n.cancels.add(instance.Cancel{Task: "x", Fence: 1 << 62})
	testredis.Eventually(t, patience, func() bool { return len(n.cancels.bell) == 0 }, "the request is heard at once")
	letGo()
	select {
	case cause := <-ended:
		if !errors.Is(cause, ErrCancelled) {
			t.Errorf("ended by %v", cause)
		}
	case <-time.After(5 * time.Second):
		t.Error("the request was lost")
	}
}
