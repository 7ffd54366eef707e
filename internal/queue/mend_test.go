package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// If another program changes the type of a key, the key is set aside, whole, and the calls that need it go on.
func TestMend_setsKeysOfAnotherTypeAside(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	ctx := t.Context()
	a := w.join("a")
	w.add(jobs("x", 3)...)
	due := w.keys.Due(lane("job"))
	w.must(rdb.Set(ctx, due, "of somebody else", 0).Err())
	w.must(rdb.Del(ctx, w.keys.Lanes).Err()) // so that no list knows it
	w.must(rdb.Set(ctx, w.keys.Events, "not ours", 0).Err())
	w.must(rdb.Set(ctx, w.keys.Running(a.gen), "not ours", 0).Err())
	if strange, err := w.q.OfAnotherType(ctx); err != nil || len(strange) != 2 { // no list knows the due set
		t.Errorf("of another type: %v, %v", strange, err)
	}
	_, err := w.q.Cycle(ctx, a.request(3, lanesOf("job")))
	if !errors.Is(err, store.ErrWrongType) {
		t.Fatalf("%v, want %v", err, store.ErrWrongType)
	}
	aside, err := w.q.Mend(ctx, err)
	w.must(err)
	same(t, "set aside", len(aside), 3)
	kept := rdb.Keys(ctx, strings.NewReplacer("{", "\\{").Replace(w.part.Prefix())+"aside:*"+"job").Val()
	if len(kept) != 1 || rdb.Get(ctx, kept[0]).Val() != "of somebody else" || rdb.TTL(ctx, kept[0]).Val() <= 0 {
		t.Errorf("kept %q", kept)
	}
	if events, err := w.q.Events(ctx, w.now().Add(-1e9), 100); err != nil || len(events) != 3 {
		t.Errorf("events %v, %v", events, err)
	}
	w.add(jobs("y", 1)...)
	a.claim(1, lanesOf("job"))
	if aside, err := w.q.Mend(ctx, nil); err != nil || len(aside) > 0 {
		t.Errorf("set aside again: %v, %v", aside, err)
	}
}

// No script meets these keys for long without an API that is used: the leader finds them by itself.
func TestMend_knowsTheKeysOfTheAPI(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	for _, key := range []string{w.keys.Answers, w.keys.Answered, w.keys.Bulk} {
		w.must(rdb.Set(t.Context(), key, "not ours", 0).Err())
	}
	aside, err := w.q.Mend(t.Context(), nil)
	w.must(err)
	same(t, "set aside", len(aside), 3)
}

// A list of lanes that was written over is found again by the due sets that there are.
func TestMend_findsTheLanes(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	ctx := t.Context()
	w.add(jobs("x", 3)...)
	had, version, err := w.q.Lanes(ctx)
	w.must(err)
	w.must(rdb.Set(ctx, w.keys.Lanes, "x", 0).Err())
	aside, err := w.q.Mend(ctx, nil)
	w.must(err)
	equal(t, "set aside", aside, []string{w.keys.Lanes})
	_, err = w.q.FindLost(ctx)
	w.must(err)
	lanes, now, err := w.q.Lanes(ctx)
	w.must(err)
	if len(lanes) != 1 || lanes[0] != had[0] || now <= version {
		t.Errorf("lanes %v, version %d after %d; want %v", lanes, now, version, had)
	}
}

// The tasks of a lane that was written over are in their place again: those that were due and nowhere else. Of one that no
// record says when it is due, it is said; none is in two places.
func TestMend_findsTheTasksOfALane(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx := t.Context()
		a := w.join("a")
		later := w.now().Add(time.Hour).Truncate(time.Second)
		w.add(job("runs"), job("kept", task.Keep(time.Hour)), keyed("holds", "k", 1, task.Wait, 1))
		claimed := a.claim(3, lanesOf("job"))
		kept := claimed[slices.IndexFunc(claimed, func(c *task.Task) bool { return c.ID == "kept" })]
		a.cycle(0, lanesOf("job"), queue.Settlement{ID: "kept", Fence: kept.Fence, Outcome: queue.Kept, Keep: time.Hour, Lane: lane("job"), Record: queue.Rewrite(kept)})
		w.add(keyed("waits", "k", 1, task.Wait, 2))
		same(t, "claimed", len(a.cycle(5, lanesOf("job")).Claimed), 0)
		slot := &task.Task{ID: task.SlotID("s", later), Type: "job", Schedule: "s", Slot: later}
		s := w.schedule("s")
		a.advance(queue.Step{Name: "s", Expect: s.String(), Becomes: queue.Last{Rev: s.Rev, Slot: later, Runs: 1, Anchor: s.Anchor}.String(), Push: []queue.Push{{Task: slot, Due: later}}})
		w.add(job("plain"), task.New("else", nil, task.ID("elsewhere")))
		w.must(rdb.Set(ctx, w.keys.Due(lane("job")), "not ours", 0).Err())
		_, err := w.q.Mend(ctx, nil)
		w.must(err)
		if _, err := w.q.Task(ctx, "plain"); !errors.Is(err, task.ErrNotFound) {
			t.Fatalf("%v: the test is of nothing", err)
		}
		for i, want := range []int{2, 0} {
			n, err := w.q.FindLost(ctx)
			w.must(err)
			same(t, fmt.Sprint("found, time ", i), n, want)
		}
		for id, state := range map[string]task.State{
			"runs": task.Running, "kept": task.Done, "holds": task.Running, "waits": task.Due, slot.ID: task.Due, "plain": task.Dead, "elsewhere": task.Due,
		} {
			f, err := w.q.Task(ctx, id)
			if err != nil || f.State != state {
				t.Errorf("%s is %v, %v; want %v", id, f.State, err, state)
			}
			if id == slot.ID && !f.At.Equal(later) {
				t.Errorf("the slot is due at %v, not %v", f.At, later)
			}
		}
		w.checkPlaces(map[int64]bool{a.gen: true})
	})
}
