package producer

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// forget deletes every key of the namespace: a Redis that came back empty.
func (w *world) forget() {
	w.Helper()
	ctx := context.Background()
	keys, err := w.rdb.Keys(ctx, "onbeat:{"+w.ns+"}*").Result()
	must(w, err)
	must(w, w.rdb.Del(ctx, keys...).Err())
}

func (w *world) entry(name string) *entry {
	w.Helper()
	st, err := w.q.Schedule(context.Background(), name)
	must(w, err)
	e, err := newEntry(st)
	must(w, err)
	if e == nil {
		w.Fatalf("there is no schedule %s", name)
	}
	return e
}

// A Redis that came back empty gets its schedules back from the instance that led: by hand and declared, paused and
// not, on their grids, and pushed again from where it last answered.
func TestRestore_fromWhatTheLeaderKnows(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := newWorld(t, rdb)
		w.apply("hand", schedule.Rule{Every: 10 * time.Millisecond, MaxRuns: 100_000})
		w.apply("paused", schedule.Every(time.Hour))
		_, err := w.By("ann@host").Pause(ctx, "paused", "the supplier moves")
		must(t, err)
		pause, err := w.Get(ctx, "paused")
		must(t, err)
		declared := func() []Schedule {
			return []Schedule{{Name: "declared", Rule: schedule.Every(10 * time.Millisecond), Task: "job"}}
		}
		tn := w.lead("one", "v1", declared)
		must(t, tn.takeStock(ctx))
		must(t, tn.push(ctx))
		known := tn.known()
		known.seen = w.now().Truncate(time.Millisecond)
		seen := known.seen
		before := map[string]*entry{}
		for _, name := range []string{"hand", "paused", "declared"} {
			before[name] = w.entry(name)
		}

		w.forget()
		must(t, tn.restore(ctx, known, nil))
		for name, was := range before {
			e := w.entry(name)
			if !e.last.Anchor.Equal(was.last.Anchor) || e.last.Paused != was.last.Paused || !reflect.DeepEqual(e.head, was.head) {
				t.Errorf("%s is %+v of %+v, was %+v of %+v", name, e.last, *e.head, was.last, *was.head)
			}
			if name == "paused" {
				if again, err := w.Get(ctx, name); err != nil || again.Pause == nil || *again.Pause != *pause.Pause || pause.Pause.By != "ann@host" {
					t.Errorf("paused: %+v, was %+v; %v", again.Pause, pause.Pause, err)
				}
				continue
			}
			if next := was.after(seen); !e.next.Equal(next) {
				t.Errorf("%s goes on at %v, want %v: the first slot after %v", name, e.next, next, seen)
			}
			again := was.grid.Count(seen, was.last.Slot)
			if again == 0 || e.last.Runs != was.last.Runs-again {
				t.Errorf("%s has run %d times, was %d, of which %d are pushed again", name, e.last.Runs, was.last.Runs, again)
			}
			notes := w.notes(name)
			if len(notes) != 1 || notes[0].Word != "forgotten" || notes[0].Count != was.grid.Count(was.last.Anchor.Add(-time.Millisecond), seen) {
				t.Errorf("%s: notes %+v", name, notes)
			}
		}

		tn = w.lead("one", "v1", declared)
		must(t, tn.takeStock(ctx))
		must(t, tn.push(ctx))
		if e := w.entry("declared"); !e.last.Anchor.Equal(before["declared"].last.Anchor) {
			t.Errorf("declared anew: anchor %v, was %v", e.last.Anchor, before["declared"].last.Anchor)
		}
	})
}

// A leader whose Redis came back empty hears that it is fenced, and must not take in that there are no schedules.
func TestRestore_afterAStepThatWasFenced(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := newWorld(t, rdb)
		w.apply("s", schedule.Every(10*time.Millisecond))
		tn := w.lead("one", "v1", nil)
		must(t, tn.takeStock(ctx))
		must(t, tn.push(ctx))
		anchor := w.entry("s").last.Anchor
		w.forget()
		testredis.Eventually(t, patience, func() bool { return tn.push(ctx) != nil }, "a step is fenced")
		known := tn.known()
		known.seen = w.now()
		must(t, tn.restore(ctx, known, nil))
		if e := w.entry("s"); !e.last.Anchor.Equal(anchor) {
			t.Errorf("anchor %v, was %v", e.last.Anchor, anchor)
		}
	})
}

// A step whose reply was lost has the schedules read again. A Redis that came back empty meanwhile must not be taken for
// one in which they were deleted.
func TestRestore_afterAStepWithoutAReply(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := newWorld(t, rdb)
		w.apply("lost", schedule.Every(10*time.Millisecond))
		w.apply("idle", schedule.Every(time.Hour))
		w.apply("gone", schedule.Every(10*time.Millisecond))
		tn := w.lead("one", "v1", nil)
		must(t, tn.takeStock(ctx))
		must(t, tn.push(ctx))
		anchor := w.entry("lost").last.Anchor
		step := []move{{e: tn.entries["lost"]}, {e: tn.entries["gone"]}}

		must(t, w.Delete(ctx, "gone"))
		must(t, tn.refresh(ctx))
		if tn.entries["gone"] != nil {
			t.Error("it was deleted, and the leader goes on with it")
		}
		w.forget()
		testredis.Eventually(t, patience, func() bool { return w.now().UnixMilli() > tn.version }, "what is written now has a later version")
		if err := tn.afterError(ctx, step, task.ErrUnreachable); !errors.Is(err, task.ErrUnreachable) {
			t.Errorf("after it: %v", err)
		}
		if e := w.entry("lost"); !e.last.Anchor.Equal(anchor) || tn.entries["lost"] == nil {
			t.Errorf("anchor %v, was %v; the leader knows %v", e.last.Anchor, anchor, tn.entries["lost"])
		}
		must(t, tn.restore(ctx, tn.known(), nil)) // as it takes stock
		if w.entry("idle"); tn.entries["idle"] == nil {
			t.Error("the leader forgot one that it did not read again")
		}
		if st, err := w.q.Schedule(ctx, "gone"); err != nil || !st.Absent() {
			t.Errorf("what was deleted came back: %+v %v", st, err)
		}
	})
}

// A loss shows by the schedules, not by how many changes there were since: as many as before the loss hide none, and one
// that was deleted after it stays deleted.
func TestRestore_tellsTheLostFromTheDeleted(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := newWorld(t, rdb)
		for _, name := range []string{"lost", "deleted", "there"} {
			w.apply(name, schedule.Every(time.Hour))
		}
		tn := w.lead("one", "v1", nil)
		must(t, tn.takeStock(ctx))
		known := tn.known()
		anchor := w.entry("lost").last.Anchor

		w.forget()
		for _, name := range []string{"deleted", "there", "other", "another"} { // another caller was faster
			w.apply(name, schedule.Every(time.Minute))
		}
		must(t, w.Delete(ctx, "deleted"))
		must(t, tn.restore(ctx, known, nil))
		if e := w.entry("lost"); !e.last.Anchor.Equal(anchor) {
			t.Errorf("anchor %v, was %v", e.last.Anchor, anchor)
		}
		if e := w.entry("there"); e.s.Rule.Every != time.Minute {
			t.Errorf("one that was made meanwhile was made over: %+v", e.s)
		}
		if st, err := w.q.Schedule(ctx, "deleted"); err != nil || !st.Absent() {
			t.Errorf("what was deleted came back: %+v %v", st, err)
		}
	})
}

// When Redis may have forgotten that a schedule was deleted, it counts as deleted.
func TestRestore_leavesWhatIsTooLongAgo(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		w := newWorld(t, rdb)
		w.apply("s", schedule.Every(time.Hour))
		tn := w.lead("one", "v1", nil)
		must(t, tn.takeStock(ctx))
		known := tn.known()
		w.forget()
		w.apply("other", schedule.Every(time.Hour))
		known.version -= queue.NamesKept.Milliseconds() + 1
		must(t, tn.restore(ctx, known, nil))
		if st, err := w.q.Schedule(ctx, "s"); err != nil || !st.Absent() {
			t.Errorf("it came back: %+v %v", st, err)
		}
	})
}
