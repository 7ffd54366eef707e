package consumer

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/task"
)

// shaky is a client whose pipelines fail for a while. The list of lanes is read by one.
type shaky struct {
	redis.UniversalClient
	fails *atomic.Int32
}

func (s shaky) Pipeline() redis.Pipeliner { return shakyPipe{s.UniversalClient.Pipeline(), s.fails} }

type shakyPipe struct {
	redis.Pipeliner
	fails *atomic.Int32
}

func (p shakyPipe) Exec(ctx context.Context) ([]redis.Cmder, error) {
	if p.fails.Add(-1) >= 0 {
		return nil, io.EOF
	}
	return p.Pipeliner.Exec(ctx)
}

// The run that frees a key ends on an instance that does not know yet in which lane the next task for the key waits, because it
// could not read the list of lanes. It is owed to that task all the same.
func TestConsume_owesTheKeyUntilTheLanesAreRead(t *testing.T) {
	for fails := range int32(4) {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			bubble(t, func(w *world) {
				ran := began{lasts: map[string]time.Duration{"first": 105 * time.Millisecond}}
				var left atomic.Int32
				a := w.start(handles(w, ran.run, "x", "fresh"), consumeBy(instance.ConsumeAll), over(shaky{w.rdb, &left}))
				w.leads(a)
				first, next := typed("x", "first"), typed("fresh", "next")
				first.Key, first.KeyLimit, first.Overlap = "k", 1, task.Wait
				next.Key, next.KeyLimit, next.Overlap = "k", 1, task.Wait
				w.add(first)
				time.Sleep(time.Millisecond)
				w.start(handles(w, ran.run, "x", "fresh"), consumeBy(instance.ConsumeAll), standby)
				time.Sleep(100 * time.Millisecond) // the second is ready; the first task ends soon
				left.Store(fails)
				w.add(next)
				time.Sleep(time.Second)
				if left.Load() > 0 {
					t.Fatalf("%d failures were not needed", left.Load())
				}
				w.soon(&ran, "next", 250*time.Millisecond)
			})
		})
	}
}
