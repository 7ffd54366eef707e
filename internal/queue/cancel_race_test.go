package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A run that a caller asked to cancel is not put back, whether it failed or was handed back: it stays held until it is
// settled as cancelled.
func TestCycle_whatIsToBeCancelledIsNotMoved(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("failed"), job("free"), keyed("key", "k", 1, task.Wait, 1), job("ended"),
			job("dead"))
		claims := map[string]*task.Task{}
		for _, x := range a.claim(5, lanesOf("job")) {
			claims[x.ID] = x
		}
		same(t, "failed", w.cancel("failed", false), task.Running)
		same(t, "ended", w.cancel("ended", false), task.Running)
		same(t, "dead", w.cancel("dead", false), task.Running)
		w.must(rdb.HSet(t.Context(), w.keys.Cancel, "k:k", fmt.Sprint(claims["key"].Fence, " 1 replaced")).Err())
		move := func(id string) queue.Settlement {
			return queue.Settlement{ID: id, Fence: claims[id].Fence, Outcome: queue.Moved, Lane: lane("job")}
		}
		r := a.cycle(0, lanesOf("job"), finished(claims["ended"]), move("free"), move("failed"), move("key"),
			queue.Settlement{ID: "dead", Fence: claims["dead"].Fence, Outcome: queue.Died, Record: queue.Rewrite(claims["dead"])})
		equal(t, "refused", r.Refused, []int{2, 3})
		equal(t, "void", r.Void, nil)
		same(t, "due", w.count(w.keys.Due(lane("job"))), 1)
		same(t, "active", w.count(w.keys.Active), 1)

		r = a.cycle(5, lanesOf("job"), finished(claims["failed"]), finished(claims["key"]))
		same(t, "void", len(r.Void), 0)
		equal(t, "claimed", ids(r.Claimed), []string{"free"})
		same(t, "active", w.count(w.keys.Active), 0)

		// A request is about the runs of its time.
		w.add(job("failed"))
		again := a.claim(1, lanesOf("job"))[0]
		claims["failed"] = again
		equal(t, "a later run", a.cycle(0, lanesOf("job"), move("failed")).Refused, nil)
	})
}

// A run that is behind is not cancelled either when a newer slot replaces those on time.
func TestCycle_whatIsBehindIsNotReplaced(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(slotIn(1, task.Behind))
		one := a.claim(1, lanesOf("job"))[0]
		w.must(rdb.HSet(t.Context(), w.keys.Cancel, "k:s", fmt.Sprint(one.Fence, " 1 replaced")).Err())
		r := a.cycle(0, lanesOf("job"), queue.Settlement{ID: one.ID, Fence: one.Fence, Outcome: queue.Moved, Lane: lane("job")})
		equal(t, "refused", r.Refused, nil)
	})
}

// Taking back looks at requests in the same step.
func TestRecover_whatIsToBeCancelledIsDead(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("asked"), job("free"), keyed("stays", "k", 1, task.Wait, 1))
		a.claim(3, lanesOf("job"))
		a.lose(w.join("b"))
		list := w.recoveries(a.gen)
		for i := range list {
			if list[i].Claim.Task.ID == "asked" {
				asked := list[i]
				asked.Dead, asked.Note = true, "asked cancelled 1 1"
				list[i].Asked = &asked
			}
		}
		same(t, "asked", w.cancel("asked", false), task.Running) // after it was read
		same(t, "stays", w.cancel("stays", false), task.Running)
		moved, left, err := w.q.Recover(t.Context(), a.gen, list)
		w.must(err)
		same(t, "moved and left", fmt.Sprint(moved, left), "2 1")
		for id, want := range map[string]task.State{"asked": task.Dead, "free": task.Due, "stays": task.Running} {
			f, err := w.q.Task(t.Context(), id)
			w.must(err)
			same(t, id, f.State, want)
		}
	})
}

// A task that waits for another attempt is taken out; so is one that waits for its key, behind or not.
func TestCancel_takesOutWhatWaits(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("retried"), slotIn(1, task.Skip), slotIn(2, task.Behind), slotIn(3, task.Wait))
		r := a.cycle(5, lanesOf("job"))
		same(t, "claimed", len(r.Claimed), 2)
		for _, x := range r.Claimed {
			if x.ID == "retried" {
				a.cycle(0, lanesOf("job"), queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Moved, Lane: lane("job"), Delay: time.Hour})
			}
		}
		for _, id := range []string{"retried", "s@2", "s@3"} {
			same(t, id, w.cancel(id, false), task.Due)
		}
		same(t, "left", w.count(w.keys.Tasks), 1)
		same(t, "requests", w.count(w.keys.Cancel), 0)
	})
}

// At maxmemory a run can be cancelled: that is what makes room.
func TestCancel_passesAtMaxmemory(t *testing.T) {
	t.Parallel()
	rdb := testredis.Private(t).Client()
	w := newWorld(t, rdb)
	a := w.join("a")
	w.add(job("runs"), keyed("key", "k", 1, task.Wait, 1))
	a.claim(2, lanesOf("job"))
	w.must(rdb.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for _, id := range []string{"runs", "key"} {
		same(t, id, w.cancel(id, false), task.Running)
	}
	w.must(rdb.ConfigSet(t.Context(), "maxmemory", "0").Err())
}
