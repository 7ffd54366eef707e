package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A claim of many tasks that are due at once does not read their due times one by one. Tasks come in the order of their due
// times, those of one moment in the order of their IDs, and each keeps its own time, wherever the claim ends.
func TestCycle_claimsInOrderWhereverDueTimesChange(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		var want []string
		dues := map[string]time.Time{}
		for moment, n := range []int{100, 1, 1, 63, 35} {
			due := time.UnixMilli(lately(int64(moment)))
			for i := range n {
				// IDs and records of several lengths, in the order of their IDs.
				id := fmt.Sprintf("%d-%03d%*s", moment, i, i%3, "")
				w.add(task.New("job", make([]byte, i/7), task.ID(id), task.At(due)))
				want, dues[id] = append(want, id), due
			}
		}
		w.add(job("later", task.At(w.now().Add(time.Hour))))
		for _, n := range []int{40, 60, 31, 34, 200} {
			r := a.cycle(n, lanesOf("job"))
			n = min(n, len(want))
			equal(t, "claimed", ids(r.Claimed), want[:n])
			for i, c := range r.Claimed {
				if !c.Due.Equal(dues[c.ID]) {
					t.Errorf("task %d, %s, is due %v, want %v", i, c.ID, c.Due, dues[c.ID])
				}
				var fence, at, score float64
				if _, err := fmt.Sscan(rdb.HGet(t.Context(), w.keys.Running(a.gen), c.ID).Val(), &fence, &at, &score); err != nil || int64(score) != dues[c.ID].UnixMilli() {
					t.Errorf("%s runs with due time %.0f, %v", c.ID, score, err)
				}
			}
			want = want[n:]
			same(t, "due work is left", r.LeftDue, len(want) > 0)
			a.cycle(0, lanesOf("job"), allFinished(r.Claimed)...)
		}
		same(t, "left", w.count(w.keys.Due(lane("job"))), 1)
		same(t, "records", w.count(w.keys.Tasks), 1)
	})
}

// A claim takes tasks that are due at once. If Redis refuses the call later on, they are all there again, also those that
// the claim did not give out.
func TestCycle_aRefusedClaimOfOneMomentLeavesNoTrace(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		slot := slotTask("s", time.UnixMilli(lately(0)))
		w.add(slot)
		settle := finished(a.claim(1, lanesOf("job"))[0])
		settle.Note = slot.ID + " done 1 0"
		due := time.UnixMilli(lately(1))
		for i := range 60 {
			id := fmt.Sprintf("j%02d", i)
			if i%20 == 10 {
				w.add(job(id, task.At(due), task.Key("k", 1))) // only the first may run
			} else {
				w.add(job(id, task.At(due)))
			}
		}
		set := w.keys.Due(lane("job"))
		before := rdb.ZRangeWithScores(t.Context(), set, 0, -1).Val()
		w.must(rdb.Set(t.Context(), w.keys.History, "of another type", 0).Err())
		if r, err := w.q.Cycle(t.Context(), a.request(50, lanesOf("job"), settle)); err == nil {
			t.Fatalf("claimed %d though the history could not be written", len(r.Claimed))
		}
		same(t, "due", fmt.Sprint(rdb.ZRangeWithScores(t.Context(), set, 0, -1).Val()), fmt.Sprint(before))
		same(t, "held", w.count(w.keys.Held), 0)
		same(t, "running", rdb.HLen(t.Context(), w.keys.Running(a.gen)).Val(), 2)

		w.must(rdb.Del(t.Context(), w.keys.History).Err())
		same(t, "claimed", len(a.cycle(50, lanesOf("job"), settle).Claimed), 50)
		same(t, "held", w.count(w.keys.Held), 2)
		same(t, "noted", len(w.notes()), 1)
	})
}
