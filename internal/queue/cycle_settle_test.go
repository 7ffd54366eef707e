package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestCycle_settlesEachOutcome(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("j", 5)...)
		got := a.claim(5, lanesOf("job"))
		slices.SortFunc(got, func(x, y *task.Task) int { return strings.Compare(x.ID, y.ID) })
		for _, x := range got {
			x.Fail(task.Failure{Error: "no"})
		}
		settle := []queue.Settlement{
			{ID: "j4", Fence: got[4].Fence, Outcome: queue.Moved, Lane: lane("job"), Due: w.now().Add(-time.Hour).Truncate(time.Millisecond)},
			{ID: "j3", Fence: got[3].Fence, Outcome: queue.Died, Record: queue.Rewrite(got[3]), Note: "s@3 dead 1 7"},
			{ID: "j2", Fence: got[2].Fence, Outcome: queue.Moved, Lane: lane("job"), Delay: time.Hour, Record: queue.Rewrite(got[2]), Note: "s@2 failed 1 7"},
			{ID: "j1", Fence: got[1].Fence, Outcome: queue.Kept, Keep: time.Hour, Record: queue.Rewrite(got[1])},
			{ID: "j0", Fence: got[0].Fence, Outcome: queue.Finished, Note: "s@0 done 1 7"},
		}
		now := w.now()
		r := a.cycle(0, lanesOf("job"), settle...)
		same(t, "void", len(r.Void), 0)

		same(t, "records", w.count(w.keys.Tasks), 4)
		same(t, "running", w.count(w.keys.Running(a.gen)), 1) // the seq
		same(t, "dead", int64(w.score(w.keys.Dead, "j3")) >= now.UnixMilli(), true)
		same(t, "kept", int64(w.score(w.keys.Done, "j1")) >= now.Add(time.Hour).UnixMilli(), true)
		same(t, "retry", int64(w.score(w.keys.Due(lane("job")), "j2")) >= now.Add(time.Hour).UnixMilli(), true)
		same(t, "handed back", int64(w.score(w.keys.Due(lane("job")), "j4")), settle[0].Due.UnixMilli())
		same(t, "totals", w.meta("done")+" "+w.meta("retried")+" "+w.meta("died"), "2 1 1")
		notes := w.notes()
		slices.Sort(notes)
		equal(t, "notes", notes, []string{"s@0 done 1 7", "s@2 failed 1 7", "s@3 dead 1 7"})

		// A task that was handed back keeps its record, and so its attempts.
		back := a.claim(1, lanesOf("job"))[0]
		same(t, "handed back", fmt.Sprint(back.ID, " ", back.Attempt, " ", len(back.Failures)), "j4 1 0")
	})
}

func TestCycle_voidSettlementsChangeNothing(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a", consume("all"))
		b := w.join("b", consume("all"))
		w.add(jobs("j", 2)...)
		got := b.claim(2, lanesOf("job"))
		x, y := got[0], got[1]
		died := func(id string, fence int64) queue.Settlement {
			return queue.Settlement{ID: id, Fence: fence, Outcome: queue.Died, Record: queue.Rewrite(x), Note: "void"}
		}
		// Never held, held by another, another fence, a fence that only begins like the right one.
		r := a.cycle(0, lanesOf("job"), died("nobody", 1), finished(x))
		slices.Sort(r.Void)
		equal(t, "void", r.Void, []int{0, 1})
		r = b.cycle(0, lanesOf("job"), died(x.ID, x.Fence+1), finished(y), died(x.ID, x.Fence/10))
		slices.Sort(r.Void)
		equal(t, "void", r.Void, []int{0, 2})
		same(t, "dead", w.count(w.keys.Dead), 0)
		same(t, "notes", len(w.notes()), 0)
		r = b.cycle(0, lanesOf("job"), finished(x), finished(y))
		equal(t, "settled twice", r.Void, []int{1})
		same(t, "records", w.count(w.keys.Tasks), 0)
		same(t, "done", w.meta("done"), "2")
	})
}

func TestCycle_isFenced(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("j", 2)...)
		x := a.claim(1, lanesOf("job"))[0]
		fenced := func(what string, r *queue.CycleRequest) {
			t.Helper()
			if _, err := w.q.Cycle(t.Context(), r); !errors.Is(err, queue.ErrFenced) {
				t.Fatalf("%s: %v, want ErrFenced", what, err)
			}
			same(t, what+": due", w.count(w.keys.Due(lane("job"))), 1)
			same(t, what+": records", w.count(w.keys.Tasks), 2)
		}
		other := a.request(1, lanesOf("job"), finished(x))
		other.Instance = "stranger"
		fenced("not registered", other)
		other = a.request(1, lanesOf("job"), finished(x))
		other.Gen--
		fenced("another generation", other)
		w.must(rdb.ZAdd(t.Context(), w.keys.Instances, redis.Z{Score: float64(w.now().UnixMilli() - 1), Member: "a"}).Err())
		fenced("lease ran out", a.request(1, lanesOf("job"), finished(x)))
	})
}

func TestCycle_staleCallsDoNothing(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("j", 3)...)
		first := a.request(1, lanesOf("job"))
		_, err := w.q.Cycle(t.Context(), first)
		w.must(err)
		if _, err = w.q.Cycle(t.Context(), first); !errors.Is(err, queue.ErrStale) {
			t.Fatalf("the same call again: %v, want ErrStale", err)
		}
		a.cycle(1, lanesOf("job"))
		if _, err = w.q.Cycle(t.Context(), first); !errors.Is(err, queue.ErrStale) {
			t.Fatalf("an earlier call: %v, want ErrStale", err)
		}
		same(t, "due", w.count(w.keys.Due(lane("job"))), 1)
		held, seq, err := w.q.Claims(t.Context(), a.gen, a.id)
		w.must(err)
		same(t, "held", len(held), 2)
		same(t, "seq", seq, a.seq)
	})
}

func TestCycle_keptTasksLeaveInTimeAndOverTheCap(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb, queue.Caps{Done: 5})
		a := w.join("a")
		keep := func(prefix string, n int, d time.Duration) {
			t.Helper()
			w.add(jobs(prefix, n)...)
			var settle []queue.Settlement
			for _, x := range a.claim(n, lanesOf("job")) {
				settle = append(settle, queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Kept, Keep: d, Record: queue.Rewrite(x)})
			}
			a.cycle(0, lanesOf("job"), settle...)
			same(t, "records of the kept", w.count(w.keys.Tasks), w.count(w.keys.Done))
		}
		keep("a", 4, 0) // at least a millisecond
		time.Sleep(5 * time.Millisecond)
		keep("b", 2, time.Hour) // twice as many leave as come
		same(t, "kept", w.count(w.keys.Done), 2)
		keep("c", 7, 2*time.Hour)
		same(t, "kept", w.count(w.keys.Done), 5)
		same(t, "those to be kept for the shortest time left first", w.score(w.keys.Done, "b0"), -1)
		same(t, "done", w.meta("done"), "13")
	})
}

func TestCycle_deadAreCapped(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb, queue.Caps{Dead: 3})
		a := w.join("a")
		for _, prefix := range []string{"old", "new"} {
			w.add(jobs(prefix, 3)...)
			var settle []queue.Settlement
			for _, x := range a.claim(3, lanesOf("job")) {
				settle = append(settle, queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Died, Record: queue.Rewrite(x)})
			}
			time.Sleep(2 * time.Millisecond)
			a.cycle(0, lanesOf("job"), settle...)
		}
		equal(t, "dead", rdb.ZRange(t.Context(), w.keys.Dead, 0, -1).Val(), []string{"new0", "new1", "new2"})
		same(t, "records", w.count(w.keys.Tasks), 3)
		same(t, "died", w.meta("died"), "6")
	})
}

func TestCycle_refusesWhatItCannotMarshal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Client)
	a := w.join("a")
	for what, r := range map[string]*queue.CycleRequest{
		"a lane not named":     a.request(0, lanesOf("job"), queue.Settlement{ID: "x", Outcome: queue.Moved, Lane: lane("else")}),
		"too many to claim":    a.request(queue.MaxBatch+1, lanesOf("job")),
		"too many settlements": a.request(0, nil, make([]queue.Settlement, queue.MaxBatch+1)...),
	} {
		if _, err := w.q.Cycle(t.Context(), r); err == nil || store.Retryable(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A task that is put back into a lane that was forgotten while it ran is found again.
func TestCycle_putsALaneBackOnTheList(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x"))
		x := a.claim(1, lanesOf("job"))[0]
		w.must(rdb.HDel(t.Context(), w.keys.Lanes, lane("job").String()).Err())
		a.cycle(0, lanesOf("job"), queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Moved, Lane: lane("job")})
		lanes, _, err := w.q.Lanes(t.Context())
		w.must(err)
		same(t, "lanes", len(lanes), 1)
	})
}

// An instance that may not claim hands tasks back, and tells an instance that may claim.
func TestCycle_handingBackWakes(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x"))
		x := a.claim(1, lanesOf("job"))[0]
		b := w.join("b")
		same(t, "b watches", b.cycle(1, lanesOf("job")).Watching, true)
		sub := rdb.Subscribe(t.Context(), w.keys.WakeOf("b"))
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		messages := sub.Channel()
		r := a.cycle(1, lanesOf("job"), queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Moved, Lane: lane("job")})
		same(t, "a may claim", r.MayClaim, false)
		select {
		case <-messages:
		case <-time.After(5 * time.Second):
			t.Fatal("nobody was told")
		}
		same(t, "claimed", b.claim(1, lanesOf("job"))[0].ID, "x")
	})
}

// The report of a run stays with the run's line, also if a settlement beside it is void.
func TestCycle_historyKeepsReportsWithTheirRuns(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		var slots []*task.Task
		for i := range 3 {
			slots = append(slots, &task.Task{ID: task.SlotID("s", ms(int64(1000+i))), Type: "job", Schedule: "s", Slot: ms(int64(1000 + i))})
		}
		w.add(slots...)
		claimed := a.claim(3, lanesOf("job"))
		var settle []queue.Settlement
		for i, tk := range claimed {
			s := finished(tk)
			s.Note = history.Run(tk, history.Done, time.Duration(i+1)*10*time.Millisecond, fmt.Sprint("error ", i))
			settle = append(settle, s)
		}
		settle[1].Fence++ // the claim of another run
		r := a.request(0, nil, settle...)
		r.Release = "v7"
		if _, err := w.q.Cycle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		var notes []history.Note
		w.must(w.q.History(t.Context(), time.Time{}, func(e history.Entry) error {
			notes = append(notes, e.Notes...)
			return nil
		}))
		if len(notes) != 2 {
			t.Fatalf("%+v", notes)
		}
		for i, n := range notes {
			of := 2 * i // the first and the third
			if n.TaskID != claimed[of].ID || n.Took != time.Duration(of+1)*10*time.Millisecond || n.Error != fmt.Sprint("error ", of) ||
				n.Release != "v7" || n.Instance != "a" || n.Gen != a.gen {
				t.Errorf("%d: %+v", i, n)
			}
		}
	})
}
