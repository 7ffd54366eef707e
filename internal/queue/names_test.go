package queue_test

import (
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A task whose ID looks like the request for a key is cancelled by itself, and so is one that looks like that.
func TestCancel_anIDIsNoKey(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("k:foo"), job("t:k:foo"), job("t:x"), job("x"), job("other", task.Key("foo", 1)))
		a.claim(5, lanesOf("job"))
		want := map[string]string{"k:foo": "k:foo", "t:k:foo": "t:k:foo", "t:x": "t:x", "x": "x"}
		for id := range want {
			same(t, id, w.cancel(id, false), task.Running)
		}
		list, err := w.reg.Cancels(t.Context())
		w.must(err)
		for _, c := range list {
			if c.Key != "" || want[c.Task] == "" {
				t.Errorf("a request for task %q, key %q", c.Task, c.Key)
			}
			delete(want, c.Task)
		}
		if len(want) > 0 {
			t.Errorf("no request for %v", want)
		}
	})
}

// If a caller's task has the ID of a slot, the slot is noted as skipped, and neither overwrites the other. If the task belongs
// to the schedule, the slot may be pushed again.
func TestAdvance_anIDThatIsTaken(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		s := w.schedule("s")
		own, foreign := slotTask("s", ms(1000)), job(task.SlotID("s", ms(2000)))
		w.add(own, foreign)
		a.advance(step("s", s, ms(1000), ms(2000), ms(3000)))
		equal(t, "notes", w.notes(), []string{"s@2000 skipped taken"})
		got := a.claim(3, lanesOf("job"))
		slices.SortFunc(got, func(a, b *task.Task) int { return len(a.Schedule) - len(b.Schedule) })
		if got[0].ID != "s@2000" || got[0].Schedule != "" || string(got[0].Payload) != "payload of s@2000" {
			t.Errorf("the other task has become %+v", got[0])
		}
	})
}

// A member that no caller could have named harms no neighbour, and lies where people see it.
func TestCycle_setsAsideWhatItCannotName(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("x", 4)...)
		ctx := t.Context()
		for _, id := range []string{"", "x0\nx1", "\n"} {
			w.must(rdb.ZAdd(ctx, w.keys.Due(lane("job")), redis.Z{Score: 1, Member: id}).Err())
			w.must(rdb.HSet(ctx, w.keys.Tasks, id, string(queue.Rewrite(job("x")))).Err())
		}
		r := a.cycle(10, lanesOf("job"))
		equal(t, "claimed", sortedIDs(r.Claimed), []string{"x0", "x1", "x2", "x3"})
		same(t, "dead", w.count(w.keys.Dead), 3)
		same(t, "malformed", len(r.Malformed), 0)
		r = a.cycle(0, lanesOf("job"), allFinished(r.Claimed)...)
		same(t, "void", len(r.Void), 0)
		same(t, "running", w.count(w.keys.Running(a.gen)), 1)
	})
}

// Numbers that onbeat did not write count as absent, and a fence rises all the same.
func TestCycle_damagedNumbersStopNobody(t *testing.T) {
	t.Parallel()
	for _, rubbish := range []string{"", "x", "-1", "1.5", "9e300", "99999999999999999999", "nan", "\x00"} {
		t.Run(rubbish, func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				w := newWorld(t, rdb)
				a := w.join("a")
				ctx := t.Context()
				w.add(job("before"))
				before := a.claim(1, lanesOf("job"))[0]
				for _, field := range []string{"fence", "lanes", "done", "retried", "died", "gen", "order", "epoch", "schedules", "beat", "clock"} {
					w.must(rdb.HSet(ctx, w.keys.Meta, field, rubbish).Err())
				}
				w.must(rdb.HSet(ctx, w.keys.Active, "k:k", rubbish, "t:limited", rubbish).Err())
				w.must(rdb.HSet(ctx, w.keys.Running(a.gen), "", rubbish).Err())
				w.add(job("x", task.Key("k", 1)), task.New("limited", nil, task.ID("l")))
				lanes := append(lanesOf("job"), queue.LaneClaim{Lane: lane("limited"), Limit: 1})
				got := a.claim(2, lanes)
				if got[0].Fence <= before.Fence {
					t.Errorf("fence %d after %d", got[0].Fence, before.Fence)
				}
				a.beat()
				r := a.cycle(1, lanes, allFinished(append(got, before))...)
				same(t, "void", len(r.Void), 0)
				same(t, "limits", w.count(w.keys.Active), 0)
			})
		})
	}
}
