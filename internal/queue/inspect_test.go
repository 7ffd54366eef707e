package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestTask_isFoundWhereverItIs(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a", release("v 1"))
		find := func(id string) queue.Found {
			t.Helper()
			f, err := w.q.Task(t.Context(), id)
			w.must(err)
			same(t, "ID", f.Task.ID, id)
			return f
		}
		if _, err := w.q.Task(t.Context(), "x"); !errors.Is(err, task.ErrNotFound) {
			t.Fatalf("unknown: %v, want ErrNotFound", err)
		}
		at := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.add(job("due", task.At(at)), job("dies"), job("kept"), keyed("runs", "k", 1, task.Wait, 1), keyed("held", "k", 1, task.Wait, 2))
		f := find("due")
		same(t, "due", fmt.Sprint(f.State, f.Held, f.At, f.Task.Due), fmt.Sprint(task.Due, false, at, at))
		for _, x := range a.cycle(10, lanesOf("job")).Claimed {
			switch x.ID {
			case "dies":
				a.cycle(0, lanesOf("job"), queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Died, Record: queue.Rewrite(x)})
			case "kept":
				a.cycle(0, lanesOf("job"), queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Kept, Keep: time.Hour, Record: queue.Rewrite(x)})
			}
		}
		f = find("runs")
		same(t, "runs", fmt.Sprint(f.State, f.Gen, f.Task.Attempt, f.Task.Instance, f.Task.Release), fmt.Sprint(task.Running, a.gen, 1, "a", "v 1"))
		if f.At.IsZero() || f.Task.Fence == 0 || f.Task.Due != ms(1) {
			t.Errorf("runs: %+v %+v", f, f.Task)
		}
		f = find("held")
		same(t, "held", fmt.Sprint(f.State, f.Held, f.At), fmt.Sprint(task.Due, true, ms(2)))
		f = find("dies")
		same(t, "dead", f.State, task.Dead)
		same(t, "died lately", time.Since(f.At) < time.Minute, true)
		f = find("kept")
		same(t, "done", f.State, task.Done)
		same(t, "kept for an hour", f.At.After(w.now().Add(50*time.Minute)), true)

		b := w.join("b")
		a.lose(b)
		f = find("runs")
		same(t, "of the dead", fmt.Sprint(f.State, f.Gen, f.Task.Instance), fmt.Sprint(task.Running, a.gen, ""))
		w.must(rdb.HSet(t.Context(), w.keys.Tasks, "bad", "?").Err())
		if _, err := w.q.Task(t.Context(), "bad"); !errors.Is(err, task.ErrRecord) {
			t.Errorf("a damaged record: %v", err)
		}
		w.must(rdb.HSet(t.Context(), w.keys.Tasks, "dies", "?").Err())
		f = find("dies")
		same(t, "dead and damaged", f.State, task.Dead)
		if !errors.Is(f.Unreadable, task.ErrRecord) || f.Task.ID != "dies" || f.Task.Type != "" {
			t.Errorf("dead and damaged: %+v %+v", f, f.Task)
		}
	})
}

// all reads a list page by page.
func (w *world) all(state task.State, o queue.ListOptions) (list []queue.Found) {
	w.Helper()
	for range 1000 {
		p, err := w.q.List(w.Context(), state, o)
		w.must(err)
		if o.Limit > 0 && len(p.Tasks) > o.Limit {
			w.Fatalf("a page of %d, the limit is %d", len(p.Tasks), o.Limit)
		}
		list = append(list, p.Tasks...)
		if p.Next == "" {
			return list
		}
		o.After = p.Next
	}
	w.Fatal("the list has no end")
	return nil
}

func foundIDs(list []queue.Found) (ids []string) {
	for _, f := range list {
		ids = append(ids, f.Task.ID)
	}
	return ids
}

func TestList_mergesTheLanesInDueOrder(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		var want []string
		var list []*task.Task
		for i := range 120 {
			// Many of one moment, over several lanes: their IDs decide.
			x := task.New("type"+strconv.Itoa(i%7), nil, task.ID(fmt.Sprintf("t%03d", i)), task.At(w.now().Truncate(time.Hour).Add(time.Duration(2+i/40)*time.Hour)))
			if i%3 == 0 {
				x.Queue = "q"
			}
			list, want = append(list, x), append(want, x.ID)
		}
		w.add(list...)
		w.add(keyed("runs", "k", 1, task.Wait, 1), keyed("zz", "k", 1, task.Wait, 2), keyed("aa", "k", 1, task.Wait, 3))
		a.cycle(10, lanesOf("job"))
		want = append(want, "zz", "aa")
		for _, limit := range []int{0, 1, 7, 100, 121, 122, 5000} {
			got := w.all(task.Due, queue.ListOptions{Limit: limit})
			equal(t, fmt.Sprint("pages of ", limit), foundIDs(got), want)
			same(t, "held", got[120].Held && got[121].Held && !got[0].Held, true)
		}
		q := w.all(task.Due, queue.ListOptions{Queue: "q", Type: "type3", Limit: 2})
		for _, f := range q {
			same(t, "queue and type", f.Task.Queue+f.Task.Type, "qtype3")
		}
		same(t, "of one queue and type", len(q), 6)
		same(t, "held of another type", len(w.all(task.Due, queue.ListOptions{Type: "none"})), 0)

		// The task that a cursor stands on may leave.
		p, err := w.q.List(t.Context(), task.Due, queue.ListOptions{Limit: 50})
		w.must(err)
		w.cancel("t049", false)
		w.cancel("t051", false)
		p, err = w.q.List(t.Context(), task.Due, queue.ListOptions{Limit: 2, After: p.Next})
		w.must(err)
		equal(t, "after it left", foundIDs(p.Tasks), []string{"t050", "t052"})
	})
}

// The parts of the due tasks have each of them once, in due order, whatever the size of a page.
func TestList_inParts(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(keyed("runs", "k", 1, task.Wait, 1), keyed("held", "k", 1, task.Wait, 2))
		a.cycle(10, lanesOf("job"))
		now := w.now()
		var late, retried, fresh []string
		for i := range 30 {
			x := task.New("type"+strconv.Itoa(i%3), nil, task.ID(fmt.Sprintf("t%02d", i)), task.At(now.Add(time.Duration(i-9)*time.Minute-30*time.Second)))
			switch {
			case i < 10:
				late = append(late, x.ID)
			case i%4 == 0:
				x.Attempts, retried = 1, append(retried, x.ID)
			default:
				fresh = append(fresh, x.ID)
			}
			w.add(x)
		}
		for _, limit := range []int{0, 1, 3, 10, 100} {
			for part, want := range map[queue.Part][]string{queue.DueNow: append(slices.Clone(late), "held"), queue.Retried: retried, queue.Fresh: fresh} {
				equal(t, fmt.Sprint("part ", part, " in pages of ", limit), foundIDs(w.all(task.Due, queue.ListOptions{Part: part, Now: now, Limit: limit})), want)
			}
		}
		equal(t, "of a type", foundIDs(w.all(task.Due, queue.ListOptions{Part: queue.Retried, Now: now, Type: "type0"})), []string{"t12", "t24"})
		c, err := w.q.Counts(t.Context())
		w.must(err)
		same(t, "counts", fmt.Sprint(c.Due, c.Overdue, c.Late, c.Held), fmt.Sprint(30, 10, 9, 1))
	})
}

// The dead tasks of a schedule are counted by their IDs: its slots and the runs by hand, and not those of a schedule whose name goes on.
func TestDeadOf(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		for i := range 1500 {
			rdb.ZAdd(t.Context(), w.keys.Dead, redis.Z{Score: float64(i), Member: fmt.Sprintf("s@%d", i)})
		}
		for _, id := range []string{"s@7+backfill", "s!x", "s@t@1", "st@1", "s", "other@1"} {
			rdb.ZAdd(t.Context(), w.keys.Dead, redis.Z{Score: 1, Member: id})
		}
		n, more, err := w.q.DeadOf(t.Context(), "s")
		w.must(err)
		same(t, "of the schedule", fmt.Sprint(n, more), "1502 false")
	})
}

func TestList_ofASchedule(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("s", 50)...)
		var want []string
		for i := range 5 {
			x := slotTask("s", ms(int64(1000+i)))
			x.Due = x.Slot
			w.add(x)
			want = append(want, x.ID)
		}
		w.add(slotTask("s2", ms(5)), job("s@77")) // of another, and one that only has such a name
		equal(t, "due", foundIDs(w.all(task.Due, queue.ListOptions{Schedule: "s", Limit: 2})), want)
		equal(t, "due of a pattern", foundIDs(w.all(task.Due, queue.ListOptions{Schedule: "s*", Type: "j*b", Queue: "*", Limit: 2})), append(slices.Clone(want), slotTask("s2", ms(5)).ID))
		late := slotTask("s", ms(7))
		late.ID += queue.BackfillMark
		w.add(late, job("x"+queue.BackfillMark)) // the other is of no schedule
		equal(t, "due of a backfill", foundIDs(w.all(task.Due, queue.ListOptions{Backfill: true, Limit: 2})), []string{late.ID})
		equal(t, "due of a backfill of another", foundIDs(w.all(task.Due, queue.ListOptions{Backfill: true, Schedule: "s2"})), nil)
		_, err := w.q.Cancel(t.Context(), late.ID, "a test", true)
		w.must(err)
		same(t, "due of a pattern that only tasks of no schedule match", len(w.all(task.Due, queue.ListOptions{Schedule: "", Type: "*x*"})), 0)
		var settle []queue.Settlement
		for _, x := range a.claim(5, lanesOf("job")) {
			settle = append(settle, queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Died, Record: queue.Rewrite(x)})
		}
		equal(t, "running", foundIDs(w.all(task.Running, queue.ListOptions{Schedule: "s", Limit: 2})), want)
		for _, s := range settle {
			a.cycle(0, lanesOf("job"), s)
			time.Sleep(2 * time.Millisecond)
		}
		slices.Reverse(want)
		equal(t, "dead, newest first", foundIDs(w.all(task.Dead, queue.ListOptions{Schedule: "s", Limit: 2})), want)
		same(t, "dead of another queue", len(w.all(task.Dead, queue.ListOptions{Queue: "q"})), 0)
	})
}

// The tasks of a key are found behind more others than a page has, and those that wait for it without a look at the rest.
func TestList_ofAKey(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(keyed("runs", "k", 1, task.Wait, 1), keyed("waits1", "k", 1, task.Wait, 2), keyed("waits2", "k", 1, task.Wait, 3))
		w.add(keyed("other runs", "k 2", 1, task.Wait, 1), keyed("other waits", "k 2", 1, task.Wait, 2))
		a.cycle(10, lanesOf("job"))
		w.add(jobs("j", 1500)...)
		later := keyed("later", "k", 1, task.Wait, 4)
		later.Due = w.now().Add(time.Hour)
		w.add(later)
		p, err := w.q.List(t.Context(), task.Due, queue.ListOptions{Key: "k", Limit: 2})
		w.must(err)
		equal(t, "the first page", foundIDs(p.Tasks), []string{"later", "waits1"})
		for _, limit := range []int{1, 2, 3, 100} {
			equal(t, "due", foundIDs(w.all(task.Due, queue.ListOptions{Key: "k", Limit: limit})), []string{"later", "waits1", "waits2"})
			equal(t, "running", foundIDs(w.all(task.Running, queue.ListOptions{Key: "k", Limit: limit})), []string{"runs"})
		}
		same(t, "of a key that none has", len(w.all(task.Due, queue.ListOptions{Key: "none"})), 0)
	})
}

func TestList_runningOverAllGenerations(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a", consume("all"))
		b := w.join("b", consume("all"))
		w.add(jobs("j", 6)...)
		var want []string
		for _, i := range []*inst{a, b, a} {
			want = append(want, ids(i.claim(2, lanesOf("job")))...)
			time.Sleep(2 * time.Millisecond)
		}
		a.lose(b)
		for _, limit := range []int{1, 4, 100} {
			got := w.all(task.Running, queue.ListOptions{Limit: limit})
			equal(t, "the longest running first", foundIDs(got), want)
			same(t, "generation", got[2].Gen, b.gen)
			same(t, "instance", got[2].Task.Instance, "b")
		}
	})
}

func TestList_doneAndDamaged(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("j", 5)...)
		for i, x := range a.claim(5, lanesOf("job")) {
			a.cycle(0, lanesOf("job"), queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Kept, Keep: time.Duration(i+1) * time.Hour, Record: queue.Rewrite(x)})
		}
		want := foundIDs(w.all(task.Done, queue.ListOptions{}))
		same(t, "done", len(want), 5)
		equal(t, "in pages", foundIDs(w.all(task.Done, queue.ListOptions{Limit: 2})), want)
		w.must(rdb.HSet(t.Context(), w.keys.Tasks, want[0], "?").Err())
		w.must(rdb.HDel(t.Context(), w.keys.Tasks, want[1]).Err())
		got := w.all(task.Done, queue.ListOptions{Limit: 2})
		equal(t, "without the one that left", foundIDs(got), slices.Delete(slices.Clone(want), 1, 2))
		same(t, "damaged", got[0].Task.Type, "")
		same(t, "damaged is said", errors.Is(got[0].Unreadable, task.ErrRecord), true)
		same(t, "the others are not", got[1].Unreadable, nil)
		same(t, "damaged, filtered", len(w.all(task.Done, queue.ListOptions{Type: "job"})), 3)

		for _, o := range []string{"x", "eDA", "!", "dG5vcGU"} {
			if _, err := w.q.List(t.Context(), task.Done, queue.ListOptions{After: o}); !errors.Is(err, task.ErrInvalid) {
				t.Errorf("after %q: %v", o, err)
			}
		}
		if _, err := w.q.List(t.Context(), "lost", queue.ListOptions{}); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("an unknown state: %v", err)
		}
	})
}

func TestCounts(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		c, err := w.q.Counts(t.Context())
		w.must(err)
		same(t, "of nothing", fmt.Sprint(c.Due, c.Running, len(c.Lanes)), "0 0 0")
		a := w.join("a")
		at := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.add(jobs("j", 3)...)
		w.add(keyed("k1", "k", 1, task.Wait, 1), keyed("k2", "k", 1, task.Wait, 2), job("later", task.At(at)),
			task.New("unknown", nil, task.ID("u")), task.New("job", nil, task.ID("high"), task.WithPriority(task.High)))
		w.schedule("s")
		got := a.cycle(4, lanesOf("job")).Claimed
		a.cycle(0, lanesOf("job"), finished(got[0]), queue.Settlement{ID: got[1].ID, Fence: got[1].Fence, Outcome: queue.Died, Record: queue.Rewrite(got[1])},
			queue.Settlement{ID: got[2].ID, Fence: got[2].Fence, Outcome: queue.Kept, Keep: time.Hour, Record: queue.Rewrite(got[2])})
		c, err = w.q.Counts(t.Context())
		w.must(err)
		same(t, "counts", fmt.Sprint(c.Due, c.Overdue, c.Held, c.Running, c.Dead, c.Done, c.Finished, c.Retried, c.Died, c.Schedules),
			fmt.Sprint(4, 3, 0, 1, 1, 1, 2, 0, 1, 1))
		same(t, "lanes", len(c.Lanes), 3)
		same(t, "first lane", c.Lanes[0].Lane.Priority, task.High)
		same(t, "head", c.Lanes[1].Head.Before(c.Now), true)
		unknown := slices.IndexFunc(c.Lanes, func(l queue.LaneCount) bool { return l.Lane.Type == "unknown" })
		same(t, "of a type that no instance handles", c.Lanes[unknown].Overdue, int64(1))
	})
}

func TestEvents_andFollow(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		kinds := make(chan string, 100)
		ended := make(chan error)
		follow := func(from string) {
			ended <- w.q.FollowEvents(ctx, from, func(e queue.Event) error {
				if e.At.IsZero() || e.ID == "" {
					return errors.New("an event without a time")
				}
				kinds <- e.Kind
				return nil
			})
		}
		go follow("")
		time.Sleep(20 * time.Millisecond) // so that it waits already: the first events of an empty stream
		since := w.now()
		w.join("a")
		for _, want := range []string{"joined", "ready", "leader"} {
			same(t, "followed", <-kinds, want)
		}
		w.schedule("s")
		same(t, "followed", <-kinds, "schedule created")
		stop := errors.New("stop")
		cancel(stop)
		if err := <-ended; !errors.Is(err, stop) {
			t.Errorf("ended with %v", err)
		}
		events, err := w.q.Events(t.Context(), since, 2)
		w.must(err)
		same(t, "the newest, newest last", fmt.Sprint(len(events), events[0].Kind, events[1].Kind), "2leaderschedule created")
		same(t, "fields", events[0].Fields["instance"], "a")
		events, err = w.q.Events(t.Context(), w.now().Add(time.Hour), 0)
		w.must(err)
		same(t, "events of the future", len(events), 0)
		err = w.q.FollowEvents(t.Context(), "0-0", func(queue.Event) error { return stop })
		same(t, "stopped by fn", errors.Is(err, stop), true)
	})
}
