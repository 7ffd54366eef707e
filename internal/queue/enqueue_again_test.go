package queue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A task that has ended is replaced in the step that adds it again. A task that waits or runs stays, with its unique key.
func TestEnqueueAgain(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		a := w.join("a")
		again := func(id string) *task.Task { return job(id, task.Unique("u "+id, time.Hour)) }
		w.add(again("died"), again("kept"), again("gone"))
		settles := allFinished(a.claim(3, lanesOf("job")))
		for i := range settles {
			settles[i].Record, settles[i].Note = queue.Rewrite(&task.Task{ID: settles[i].ID, Type: "job"}), "x"
			switch settles[i].ID {
			case "died":
				settles[i].Outcome = queue.Died
			case "kept":
				settles[i].Outcome, settles[i].Keep = queue.Kept, time.Hour
			}
		}
		a.cycle(0, lanesOf("job"), settles...)
		w.add(job("runs"))
		a.claim(1, lanesOf("job"))
		w.add(job("waits"), job("other", task.Unique("u new", time.Hour)))
		same(t, "dead and kept", w.count(w.keys.Dead)+w.count(w.keys.Done), 2)
		for _, id := range []string{"died", "kept", "gone"} {
			w.must(rdb.PExpire(ctx, w.keys.Unique("u "+id), time.Minute).Err())
		}

		list := []*task.Task{again("died"), again("kept"), again("gone"), again("runs"), again("waits"), again("new"), again("died")}
		refused, _, err := w.q.EnqueueAgain(ctx, list)
		w.must(err)
		for i, by := range []string{"", "", "", "id", "id", "unique", "id"} {
			var r *task.Refused
			if errors.As(refused[i], &r); by == "" && refused[i] != nil || by != "" && (r == nil || r.By != by) {
				t.Errorf("%s: %v, want by %q", list[i].ID, refused[i], by)
			}
		}
		same(t, "dead and kept", w.count(w.keys.Dead)+w.count(w.keys.Done), 0)
		for _, id := range []string{"died", "kept", "gone"} {
			if rdb.Get(ctx, w.keys.Unique("u "+id)).Val() != id || rdb.PTTL(ctx, w.keys.Unique("u "+id)).Val() < 30*time.Minute {
				t.Errorf("the window of %s did not begin anew", id)
			}
		}
		same(t, "keys of those that stay", rdb.Exists(ctx, w.keys.Unique("u runs"), w.keys.Unique("u waits")).Val(), int64(0))
		got := a.claim(5, lanesOf("job"))
		equal(t, "claimed", sortedIDs(got), []string{"died", "gone", "kept", "other", "waits"})
		for _, c := range got {
			if c.Attempt != 1 || len(c.Failures) > 0 {
				t.Errorf("%s does not begin anew: %+v", c.ID, c)
			}
		}
		w.checkPlaces(map[int64]bool{a.gen: true})
	})
}

// A task that is refused leaves the task that has ended as it was.
func TestEnqueueAgain_refusedReplacesNothing(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		a := w.join("a")
		w.add(job("died", task.Unique("u", time.Minute)))
		settles := allFinished(a.claim(1, lanesOf("job")))
		settles[0].Outcome, settles[0].Record, settles[0].Note = queue.Died, queue.Rewrite(&task.Task{ID: "died", Type: "job"}), "x"
		a.cycle(0, lanesOf("job"), settles...)
		before := rdb.HGet(ctx, w.keys.Tasks, "died").Val()
		lanes := map[string]any{}
		for i := range queue.MostLanes {
			lanes[fmt.Sprint("full", i, "|normal|x")] = 1
		}
		w.must(rdb.HSet(ctx, w.keys.Lanes, lanes).Err())
		refused, _, err := w.q.EnqueueAgain(ctx, []*task.Task{task.New("another", nil, task.ID("died"), task.Unique("u", time.Hour))})
		w.must(err)
		if !errors.Is(refused[0], task.ErrInvalid) {
			t.Errorf("refused for %v, want for the lanes", refused[0])
		}
		same(t, "dead", w.count(w.keys.Dead), 1)
		same(t, "its record", rdb.HGet(ctx, w.keys.Tasks, "died").Val(), before)
		if rdb.PTTL(ctx, w.keys.Unique("u")).Val() > time.Minute {
			t.Error("its window began anew")
		}
	})
}
