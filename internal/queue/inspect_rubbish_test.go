package queue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// Another program may write anything in place of a time. One such record does not hide the others: every time that is read
// can be written as JSON, which has the years up to 9999.
func TestInspect_ofTimesThatAreNoneIsJSON(t *testing.T) {
	t.Parallel()
	for _, score := range []string{"inf", "-inf", "9e300", "-9e300", "9e17", "-9e17", "253402300800000", "9223372036854775807"} {
		t.Run(score, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testredis.Client(t))
			w.rubbish(score)
			for state, n := range map[task.State]int{task.Due: 5, task.Running: 2, task.Dead: 2, task.Done: 2} {
				list := w.all(state, queue.ListOptions{})
				same(t, fmt.Sprint(state, " tasks"), len(list), n)
				w.isJSON(list)
				same(t, fmt.Sprint(state, " tasks page by page"), len(w.all(state, queue.ListOptions{Limit: 1})), n)
				for _, f := range list {
					found, err := w.q.Task(t.Context(), f.Task.ID)
					w.must(err)
					w.isJSON(found)
					same(t, f.Task.ID, found.At, f.At)
				}
			}
			counts, err := w.q.Counts(t.Context())
			w.must(err)
			w.isJSON(counts)
		})
	}
}

// rubbish puts two tasks into each state. One of them has an invalid time, or one that onbeat would not write.
func (w *world) rubbish(score string) {
	w.Helper()
	a := w.join("a")
	w.add(job("dead"), job("died"), job("done"), job("kept"), job("runs"), keyed("running", "k", 1, task.Wait, 1), keyed("held", "k", 1, task.Wait, 2),
		keyed("hold", "k", 1, task.Wait, 3))
	for _, x := range a.cycle(10, lanesOf("job")).Claimed {
		s := queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Died, Record: queue.Rewrite(x)}
		switch x.ID {
		case "done", "kept":
			s.Outcome, s.Keep = queue.Kept, time.Hour
		case "runs", "running":
			continue
		}
		a.cycle(0, lanesOf("job"), s)
	}
	w.add(job("due", task.At(w.now().Add(time.Hour))), job("later", task.At(w.now().Add(time.Hour))), job("last", task.At(w.now().Add(2*time.Hour))))
	do := func(args ...any) {
		w.Helper()
		w.must(w.rdb.Do(w.Context(), args...).Err())
	}
	for key, id := range map[string]string{w.keys.Due(lane("job")): "due", w.keys.Dead: "dead", w.keys.Done: "done"} {
		do("ZADD", key, score, id)
	}
	do("HSET", w.keys.Running(a.gen), "runs", "1 "+score+" "+score)
	members, err := w.rdb.ZRange(w.Context(), w.keys.Held, 0, -1).Result()
	w.must(err)
	for _, m := range members {
		if part := strings.Split(m, "\x1f"); part[3] == "held" {
			part[1] = score
			do("ZREM", w.keys.Held, m)
			do("ZADD", w.keys.Held, 0, strings.Join(part, "\x1f"))
		}
	}
}

func (w *world) isJSON(v any) {
	w.Helper()
	if _, err := json.Marshal(v); err != nil {
		w.Errorf("%v in %+v", err, v)
	}
}

func TestStreams_ofIDsThatAreNoTimeAreJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Client(t))
	line := "s@9999999999999999 done 1 9999999999999999\ns@9999999999999998..9999999999999999 missed 2 outage\ns@-9999999999999999 dead 1 5"
	for _, id := range []string{"1-1", "253402300800000-1", "9999999999999999-1", "18446744073709551615-1"} {
		w.must(w.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.keys.Events, ID: id, Values: []string{"event", "led"}}).Err())
		w.must(w.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.keys.History, ID: id, Values: []string{"slots", line}}).Err())
	}
	events, err := w.q.Events(t.Context(), time.Time{}, 0)
	w.must(err)
	same(t, "events", len(events), 4)
	w.isJSON(events)
	entries := 0
	w.must(w.q.History(t.Context(), time.Time{}, func(e history.Entry) error {
		entries++
		w.isJSON(e)
		return nil
	}))
	same(t, "entries", entries, 4)
}
