package consumer

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// An answer lay here while the machine was suspended for longer than its lease. The tasks that it claimed do not begin,
// because another instance has them by now.
func TestConsumer_beginsNothingByAnAnswerFromBeforeItSlept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var l ledger
	var suspended atomic.Bool
	k := w.q.Keys()
	n := w.start(one(t, func(_ context.Context, t *task.Task) error { l.note(t); return nil }), func(s *setup) {
		s.slept = func(time.Time) time.Duration {
			ctx := context.Background()
			claimed := w.rdb.HExists(ctx, k.Tasks, "x").Val() && w.rdb.ZCard(ctx, k.Due(queue.Lane{Queue: task.DefaultQueue, Type: "job"})).Val() == 0
			if !claimed || !suspended.CompareAndSwap(false, true) {
				return 0
			}
			for _, id := range w.rdb.HKeys(ctx, k.Members).Val() { // its lease runs out meanwhile
				w.rdb.ZAdd(ctx, k.Instances, redis.Z{Score: 1, Member: id})
			}
			return time.Minute
		}
	})
	w.leads(n)
	w.add(job("x", task.MaxAttempts(3)))
	w.gone("x")
	if runs := l.all(); !suspended.Load() || len(runs) != 1 || runs[0].Attempt != 2 {
		t.Errorf("suspended: %v; it ran %d times, first as run %d; want once, as run 2", suspended.Load(), len(runs), runs[0].Attempt)
	}
}

func TestSlept(t *testing.T) {
	t.Parallel()
	if d := slept(time.Now()); d > 100*time.Millisecond || d < -100*time.Millisecond {
		t.Errorf("slept for %v while awake", d)
	}
}
