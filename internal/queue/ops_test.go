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
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func (w *world) cancel(id string, forget bool) task.State {
	w.Helper()
	s, err := w.q.Cancel(w.Context(), id, "by hand", forget)
	if errors.Is(err, task.ErrNotFound) {
		return ""
	}
	w.must(err)
	return s
}

func TestCancel_byState(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		same(t, "unknown", w.cancel("x", true), "")
		w.add(job("due", task.In(time.Hour)), slotTask("s", ms(5)), keyed("runs", "k", 1, task.Wait, 1), keyed("held", "k", 1, task.Wait, 2), keyed("held2", "k", 1, task.Wait, 3))
		same(t, "due", w.cancel("due", false), task.Due)
		same(t, "a slot", w.cancel("s@5", false), task.Due)
		equal(t, "note", w.notes(), []string{"s@5 cancelled 0 0"})
		got := a.claimAll(10, "runs")
		same(t, "held", w.cancel("held", false), task.Due)
		same(t, "held", w.count(w.keys.Held), 1)

		same(t, "running", w.cancel("runs", false), task.Running)
		c := a.beat().Cancel
		same(t, "asked", len(c), 1)
		same(t, "covers", c[0].Covers("runs", "", got[0].Fence), true)
		same(t, "covers the next claim", c[0].Covers("runs", "", got[0].Fence+1), false)
		same(t, "reason", c[0].Reason, "by hand")

		a.cycle(0, lanesOf("job"), queue.Settlement{ID: "runs", Fence: got[0].Fence, Outcome: queue.Died, Record: queue.Rewrite(got[0])})
		w.add(job("kept"))
		got = a.claimAll(10, "held2", "kept")
		for _, x := range got {
			a.cycle(0, lanesOf("job"), queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Kept, Keep: time.Hour, Record: queue.Rewrite(x)})
		}
		for id, want := range map[string]task.State{"runs": task.Dead, "kept": task.Done} {
			same(t, id, w.cancel(id, false), want)
			same(t, id+" is left alone", w.cancel(id, true), want)
			same(t, id+" is forgotten", w.cancel(id, true), "")
		}
		same(t, "records", w.count(w.keys.Tasks), 1)
		events, err := w.q.Events(t.Context(), time.Time{}, 3)
		w.must(err)
		same(t, "events", events[2].Kind, "task deleted")
	})
}

// A task with a damaged record can be deleted once it has ended. Before that its place is not known.
func TestCancel_forgetsTheUnreadable(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("dead"), job("due"))
		for _, x := range a.claimAll(10, "dead", "due") {
			s := queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Died, Record: []byte("?")}
			if x.ID == "due" {
				s.Outcome, s.Lane, s.Delay = queue.Moved, queue.LaneOf(x), time.Hour
			}
			a.cycle(0, lanesOf("job"), s)
		}
		for _, id := range []string{"dead", "due"} {
			if _, err := w.q.Cancel(t.Context(), id, "by hand", false); !errors.Is(err, task.ErrRecord) {
				t.Errorf("%s, not to be forgotten: %v", id, err)
			}
		}
		same(t, "forgotten", w.cancel("dead", true), task.Dead)
		if _, err := w.q.Cancel(t.Context(), "due", "by hand", true); !errors.Is(err, task.ErrRecord) {
			t.Errorf("due: %v", err)
		}
		same(t, "records", w.count(w.keys.Tasks), 1)
	})
}

// claimAll claims up to n and checks what it got.
func (i *inst) claimAll(n int, want ...string) []*task.Task {
	i.Helper()
	got := i.cycle(n, lanesOf("job")).Claimed
	equal(i, "claimed", sortedIDs(got), want)
	return got
}

// When the task whose turn it was is cancelled, it is the turn of the next.
func TestCancel_passesTheTurnOn(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		for i := range 4 {
			w.add(keyed(fmt.Sprint(i), "k", 1, task.Wait, int64(i+1)))
		}
		got := a.claimAll(10, "0")
		a.cycle(0, lanesOf("job"), finished(got[0])) // 1 is due now
		same(t, "state", w.cancel("1", false), task.Due)
		got = a.claimAll(10, "2")
		same(t, "held", w.count(w.keys.Held), 1)
		// While a task runs, cancelling a due task of the same key lets no other task go on.
		w.add(keyed("9", "k", 1, task.Wait, 9))
		w.cancel("9", false)
		same(t, "held", w.count(w.keys.Held), 1)
		a.cycle(0, lanesOf("job"), finished(got[0]))
		a.claimAll(10, "3")
	})
}

func TestRevive_makesTheDeadDue(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x"), job("y"))
		got := a.claim(2, lanesOf("job"))
		var settle []queue.Settlement
		for _, x := range got {
			x.Fail(task.Failure{Error: "no"})
			settle = append(settle, queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Died, Record: queue.Rewrite(x)})
		}
		a.cycle(0, lanesOf("job"), settle...)
		w.must(rdb.HDel(t.Context(), w.keys.Lanes, lane("job").String()).Err())
		n, err := w.q.Revive(t.Context(), append(got, job("unknown")))
		w.must(err)
		same(t, "revived", n, 2)
		again := a.claim(2, lanesOf("job"))
		same(t, "attempts and errors", fmt.Sprint(again[0].Attempt, again[0].LastError()), "1no")
		lanes, _, err := w.q.Lanes(t.Context())
		w.must(err)
		same(t, "lanes", len(lanes), 1)
		n, err = w.q.Revive(t.Context(), got)
		w.must(err)
		same(t, "revived again", n, 0)
	})
}

// A caller read the schedule, and worked out what its dead tasks are now. If the schedule has changed since, they stay dead.
func TestReviveAll_leavesTasksOfAScheduleThatChanged(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x"), job("y"), job("z"))
		var settle []queue.Settlement
		var list []queue.Revival
		for _, x := range a.claim(3, lanesOf("job")) {
			settle = append(settle, queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Died, Record: queue.Rewrite(x)})
			list = append(list, queue.Revival{Task: x, Schedule: map[string]string{"x": "changed", "y": "same", "z": "gone"}[x.ID], Rev: map[string]int64{"x": 7, "y": 8}[x.ID]})
		}
		a.cycle(0, lanesOf("job"), settle...)
		w.must(rdb.HSet(t.Context(), w.keys.Last, "changed", "8 1 1 1 0", "same", "8 1 1 1 0").Err())
		n, moved, err := w.q.ReviveAll(t.Context(), list)
		w.must(err)
		same(t, "revived", n, 2)
		same(t, "left alone", len(moved), 1)
		same(t, "the one", list[moved[0]].ID, "x")
		dead, err := rdb.ZRange(t.Context(), w.keys.Dead, 0, -1).Result()
		w.must(err)
		same(t, "dead", strings.Join(dead, " "), "x")
	})
}

func TestTidy_bounds(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb, queue.Caps{Done: 2, Dead: 2})
		ctx, now := t.Context(), float64(w.now().UnixMilli())
		for i := range 4 {
			for key, at := range map[string]float64{w.keys.Done: now + 60_000, w.keys.Dead: now} {
				id := fmt.Sprint(key, i)
				w.must(rdb.ZAdd(ctx, key, redis.Z{Score: at + float64(i), Member: id}).Err())
				w.must(rdb.HSet(ctx, w.keys.Tasks, id, "1.").Err())
			}
		}
		w.must(rdb.ZAdd(ctx, w.keys.Done, redis.Z{Score: now - 1, Member: "old"}).Err())
		hour := int64(now) - time.Hour.Milliseconds() - 1
		w.add(job("due", task.In(time.Hour)))
		w.must(rdb.HSet(ctx, w.keys.Lanes, "default|normal|gone", hour, lane("job").String(), hour, "default|normal|young", int64(now)).Err())
		w.must(rdb.HSet(ctx, w.keys.Cancel, "old", fmt.Sprintf("1 %d x", int64(now)-61_000), "new", fmt.Sprintf("1 %d x", int64(now))).Err())
		before := w.meta("lanes")
		n, err := w.q.Tidy(ctx, 5*time.Second)
		w.must(err)
		same(t, "removed", n, 5)
		same(t, "done", w.count(w.keys.Done), 2)
		same(t, "dead", w.count(w.keys.Dead), 2)
		same(t, "records", w.count(w.keys.Tasks), 5)
		same(t, "lanes", w.count(w.keys.Lanes), 2)
		same(t, "the version rose", w.meta("lanes") > before, true)
		same(t, "a lane in use is seen", rdb.HGet(ctx, w.keys.Lanes, lane("job").String()).Val() > fmt.Sprint(hour), true)
		same(t, "cancel", fmt.Sprint(rdb.HKeys(ctx, w.keys.Cancel).Val()), "[new]")
	})
}

// A lane that a waiting task goes back to stays; the others leave, whoever waits.
func TestTidy_keepsTheLanesOfThoseWhoWait(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(keyed("1", "k", 1, task.Wait, 1), keyed("2", "k", 1, task.Wait, 2))
		a.claim(1, lanesOf("job"))
		long := w.now().Add(-time.Hour - time.Second).UnixMilli()
		w.must(rdb.HSet(t.Context(), w.keys.Lanes, "default|normal|gone", long, lane("job").String(), long).Err())
		_, err := w.q.Tidy(t.Context(), 5*time.Second)
		w.must(err)
		left, err := rdb.HKeys(t.Context(), w.keys.Lanes).Result()
		w.must(err)
		equal(t, "lanes", left, []string{lane("job").String()})
	})
}

func TestTidy_forgetsTheNamesOfDeletedSchedules(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		for _, name := range []string{"stays", "goes", "recent"} {
			w.schedule(name)
		}
		w.change(queue.Change{Name: "goes", Delete: true})
		w.must(rdb.HIncrBy(t.Context(), w.keys.Meta, "schedules", queue.NamesKept.Milliseconds()+1).Err())
		w.change(queue.Change{Name: "recent", Delete: true})
		_, err := w.q.Tidy(t.Context(), 5*time.Second)
		w.must(err)
		names, _, err := w.q.ChangedSince(t.Context(), 0)
		w.must(err)
		equal(t, "named", names, []string{"stays", "recent"})
	})
}

// A run whose instance was lost is taken back when its lease is over: until then a request to cancel it is kept.
func TestTidy_keepsARequestToCancelForTwoLeases(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		now := w.now().UnixMilli()
		ago := func(d time.Duration) string { return fmt.Sprintf("7 %d gone", now-d.Milliseconds()) }
		w.must(rdb.HSet(t.Context(), w.keys.Cancel, "new", ago(50*time.Second), "old", ago(70*time.Second), "older", ago(5*time.Minute)).Err())
		left := func(lease time.Duration) []string {
			t.Helper()
			_, err := w.q.Tidy(t.Context(), lease)
			w.must(err)
			list, err := rdb.HKeys(t.Context(), w.keys.Cancel).Result()
			w.must(err)
			slices.Sort(list)
			return list
		}
		equal(t, "with a long lease", left(100*time.Second), []string{"new", "old"})
		equal(t, "with the default", left(5*time.Second), []string{"new"})
	})
}

// Forget removes what has ended, and nothing that was made due again meanwhile.
func TestForget_leavesWhatIsDueAgain(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("j", 2)...)
		var settle []queue.Settlement
		for _, tk := range a.claim(2, lanesOf("job")) {
			settle = append(settle, queue.Settlement{ID: tk.ID, Fence: tk.Fence, Outcome: queue.Died, Record: queue.Rewrite(tk)})
		}
		a.cycle(0, nil, settle...)
		again, err := w.q.Task(t.Context(), settle[0].ID)
		w.must(err)
		_, err = w.q.Revive(t.Context(), []*task.Task{again.Task})
		w.must(err)
		if err := w.q.Forget(t.Context(), settle[0].ID, "test"); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("of one that is due again: %v", err)
		}
		w.must(w.q.Forget(t.Context(), settle[1].ID, "test"))
		same(t, "tasks", w.count(w.keys.Tasks), 1)
	})
}
