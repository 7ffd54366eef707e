package queue_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A slot that had begun when its instance was lost is no missed slot: the sweep after an outage leaves it.
func TestAdvance_dropsNoSlotThatHadBegun(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		now, err := w.q.Now(t.Context())
		w.must(err)
		due := now.Truncate(time.Millisecond).Add(-time.Second)
		w.add(job("begun", task.At(due)))
		same(t, "claimed", len(a.claim(1, lanesOf("job"))) > 0, true)
		w.add(job("waiting", task.At(due)))
		b := w.join("b")
		a.lose(b)
		_, _, err = w.q.Recover(t.Context(), a.gen, w.recoveries(a.gen))
		w.must(err)

		lane, last := lanesOf("job")[0].Lane, w.schedule("s").String()
		var drops []queue.Drop
		for _, id := range []string{"begun", "waiting"} {
			drops = append(drops, queue.Drop{Place: queue.Place{Lane: lane, ID: id}, Due: due})
		}
		_, dropped, _, err := w.q.Advance(t.Context(), b.term(), []queue.Step{{Name: "s", Expect: last, Becomes: last, Drop: drops}})
		w.must(err)
		same(t, "dropped", dropped, 1)
		same(t, "still due", w.score(w.keys.Due(lane), "begun") > 0, true)
	})
}
