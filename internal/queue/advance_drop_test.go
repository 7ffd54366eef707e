package queue_test

import (
	"testing"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// At maxmemory too, dropped slots leave, and are taken off the runs in the same step.
func TestAdvance_dropsWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Private(t).Client())
	a := w.join("a")
	a.advance(step("s", w.schedule("s"), ms(1000), ms(2000), ms(3000)))
	a.claim(1, lanesOf("job"))
	w.must(w.rdb.ConfigSet(t.Context(), "maxmemory-policy", "noeviction").Err())
	w.must(w.rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	last := w.last("s").String()
	steps := []queue.Step{{Name: "s", Expect: last, Becomes: last, Drop: []queue.Drop{
		drop("s", ms(1000), ms(1000)), drop("s", ms(2000), ms(2000)), drop("s", ms(3000), ms(3000)),
	}}}
	_, dropped, moved, err := a.q.Advance(t.Context(), a.term(), steps)
	w.must(err)
	same(t, "moved", len(moved), 0)
	same(t, "dropped", dropped, 2)
	same(t, "of the step", steps[0].Dropped, 2)
	same(t, "runs", w.last("s").Runs, 1)
}
