package consumer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// Instances that read different lanes, by queue or by type, watch for themselves: a wake-up that one of them takes in
// says nothing to the others.
func TestWake_reachesWhoeverReadsTheLane(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		var ran ledger
		queues := []string{"mail", "report", "index"}
		for _, name := range queues {
			w.start(one(t, func(_ context.Context, x *task.Task) error {
				ran.note(x)
				return nil
			}), consumeBy(instance.ConsumeAll), func(s *setup) { s.Queues = map[string]int{name: 1} })
		}
		for round := range 4 {
			for _, name := range queues {
				id := fmt.Sprintf("%s-%d", name, round)
				w.add(job(id, task.Queue(name), task.In(50*time.Millisecond)))
				testredis.Eventually(t, 5*time.Second, func() bool { return ran.count(id) == 1 }, "%s runs", id)
			}
		}
	})
}

// The next task of a key may be of a type that the instance which ended the last one does not handle.
func TestWake_reachesWhoeverHandlesTheNextOfAKey(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		var ran ledger
		for _, typ := range []string{"a", "b", "c"} {
			w.start(mux(t, map[string]handlers.Func{typ: func(_ context.Context, x *task.Task) error {
				ran.note(x)
				time.Sleep(200 * time.Millisecond)
				return nil
			}}), consumeBy(instance.ConsumeAll))
		}
		for round := range 2 {
			var list []string
			for _, typ := range []string{"a", "b", "c", "a", "c", "b"} {
				id := fmt.Sprintf("%s-%d-%d", typ, round, len(list))
				list = append(list, id)
				w.add(task.New(typ, nil, task.ID(id), task.Key("k", 1)))
			}
			for _, id := range list {
				testredis.Eventually(t, 5*time.Second, func() bool { return ran.count(id) == 1 }, "%s runs", id)
			}
		}
	})
}
