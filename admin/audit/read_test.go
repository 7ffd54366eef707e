package audit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// house is a namespace in which a dispatcher may run.
type house struct {
	*testing.T
	*onbeat.Dispatcher
	rdb       *redis.Client
	ns        string
	queue     *queue.Queue
	schedules *producer.Schedules
	auditor   *audit.Auditor
}

func newHouse(t *testing.T, rdb *redis.Client) *house {
	t.Helper()
	h := &house{T: t, rdb: rdb, ns: testredis.Namespace(t)}
	h.Dispatcher = h.instance()
	var err error
	if h.queue, err = queue.New(rdb, queue.Partition{Namespace: h.ns}, queue.Caps{}); err != nil {
		t.Fatal(err)
	}
	p, err := producer.New(rdb, h.ns, producer.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h.schedules = producer.NewSchedules(p, nil)
	if h.auditor, err = audit.New(rdb, h.ns, nil); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) instance() *onbeat.Dispatcher {
	h.Helper()
	d, err := onbeat.New(h.rdb, onbeat.Config{Namespace: h.ns, Release: "v1", Lease: time.Second})
	if err != nil {
		h.Fatal(err)
	}
	err = d.Handle("beat", handlers.Func(func(context.Context, *task.Task) error { return nil }))
	if err != nil {
		h.Fatal(err)
	}
	return d
}

// run lets an instance work for a while.
func (h *house) run(d time.Duration) {
	h.Helper()
	ctx, done := context.WithTimeout(h.Context(), d)
	defer done()
	if err := h.instance().Run(ctx); err != nil {
		h.Fatal(err)
	}
}

// runUntil runs until the history has some entries: on a busy machine little happens in a second.
func (h *house) runUntil(entries int64) {
	h.Helper()
	for h.rdb.XLen(h.Context(), h.queue.Keys().History).Val() < entries {
		h.run(time.Second)
	}
}

func (h *house) apply(name string, r schedule.Rule) {
	h.Helper()
	if _, err := h.schedules.Apply(h.Context(), producer.Schedule{Name: name, Rule: r, Task: "beat"}); err != nil {
		h.Fatal(err)
	}
}

// ran is the first slot that the history says was done, or zero.
func (h *house) ran(name string) (slot time.Time) {
	h.Helper()
	err := h.queue.History(h.Context(), time.Time{}, func(e history.Entry) error {
		for _, n := range e.Notes {
			if slot.IsZero() && n.Schedule == name && n.Word == "done" {
				slot = n.Slot
			}
		}
		return nil
	})
	if err != nil {
		h.Fatal(err)
	}
	return slot
}

// done counts the slots that the history says were done.
func (h *house) done(name string) (n int) {
	h.Helper()
	err := h.queue.History(h.Context(), time.Time{}, func(e history.Entry) error {
		for _, x := range e.Notes {
			if x.Schedule == name && x.Word == "done" {
				n++
			}
		}
		return nil
	})
	if err != nil {
		h.Fatal(err)
	}
	return n
}

func (h *house) audit(name string) audit.Report {
	h.Helper()
	list, err := h.auditor.Run(h.Context(), audit.Options{Schedule: name, Grace: time.Millisecond})
	if err != nil {
		h.Fatal(err)
	}
	if len(list) != 1 {
		h.Fatalf("%d reports, want 1", len(list))
	}
	return list[0]
}

func TestRun_accountsForEverySlotOfALife(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		h := newHouse(t, rdb)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		h.apply("beat", schedule.Rule{Every: 20 * time.Millisecond})
		d := h.instance()
		go func() { ended <- d.Run(ctx) }()
		ran := 0
		runs := func() {
			testredis.Eventually(t, time.Minute, func() bool { return h.done("beat") >= ran+10 }, "slots run")
			ran = h.done("beat")
		}
		rests := func() { time.Sleep(300 * time.Millisecond) } // for slots to come that do not run
		for _, step := range []struct {
			first func()
			then  func() error
		}{
			{runs, func() error { _, err := h.schedules.Pause(ctx, "beat", ""); return err }},
			{rests, func() error { _, err := h.schedules.Resume(ctx, "beat"); return err }},
			{runs, func() error { h.apply("beat", schedule.Rule{Every: 30 * time.Millisecond}); return nil }},
			{runs, func() error {
				h.apply("beat", schedule.Rule{Every: 30 * time.Millisecond, Jitter: 20 * time.Millisecond})
				return nil
			}},
			{runs, func() error { return h.schedules.Delete(ctx, "beat") }},
			{rests, func() error {
				h.apply("beat", schedule.Rule{Every: 25 * time.Millisecond, Start: "2020-01-01T00:00:00Z"})
				return nil
			}},
			{runs, func() error { _, err := h.schedules.Pause(ctx, "beat", ""); return err }},
		} {
			step.first()
			if err := step.then(); err != nil {
				t.Fatal(err)
			}
		}
		rests()
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		r := h.audit("beat")
		if r.Broken() {
			t.Errorf("broken: %v, %v", r.Counts, r.Breaks)
		}
		if n := r.Counts[audit.OnTime] + r.Counts[audit.Late]; n < 50 {
			t.Errorf("%d ran, want at least 50: %v", n, r.Counts)
		}
		for v, least := range map[audit.Verdict]int64{audit.Paused: 10, audit.Changed: 10} {
			if r.Counts[v] < least {
				t.Errorf("%d %s, want at least %d: %v", r.Counts[v], v, least, r.Counts)
			}
		}
	})
}

func TestRun_judgesTheDeletedToo(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		h := newHouse(t, rdb)
		h.apply("beat", schedule.Rule{Every: 50 * time.Millisecond})
		h.runUntil(10)
		if err := h.schedules.Delete(t.Context(), "beat"); err != nil {
			t.Fatal(err)
		}
		r := h.audit("beat")
		if r.Broken() || r.Counts[audit.OnTime]+r.Counts[audit.Late] < 5 {
			t.Errorf("%v, %v; want some that ran and nothing broken", r.Counts, r.Breaks)
		}
		if _, err := h.auditor.Run(t.Context(), audit.Options{Schedule: "other"}); !errors.Is(err, task.ErrNotFound) {
			t.Errorf("of a schedule that never was: %v, want ErrNotFound", err)
		}
	})
}

func TestRun_knowsWhatNobodyHasDealtWith(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		h := newHouse(t, rdb)
		if list, err := h.auditor.Run(t.Context(), audit.Options{}); err != nil || len(list) != 0 {
			t.Errorf("of nothing: %v, %v", list, err)
		}
		h.apply("beat", schedule.Rule{Every: 50 * time.Millisecond})
		h.run(400 * time.Millisecond)
		time.Sleep(400 * time.Millisecond) // no instance is there, and the slots that were pushed ahead lie there
		r := h.audit("beat")
		if r.Broken() || r.Counts[audit.Pending] < 6 {
			t.Errorf("%v, %v; want at least 6 pending and nothing broken", r.Counts, r.Breaks)
		}
		h.run(500 * time.Millisecond) // the policy is to run the latest of them
		r = h.audit("beat")
		if r.Broken() || r.Counts[audit.Missed] < 5 || r.Why["missed: outage"]+r.Why["missed: policy once"] != r.Counts[audit.Missed] {
			t.Errorf("%v, %v, %v; want at least 5 missed and nothing broken", r.Counts, r.Why, r.Breaks)
		}
	})
}

// TestRun_findsWhatIsBroken breaks promises by hand.
func TestRun_findsWhatIsBroken(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		h := newHouse(t, rdb)
		ctx := t.Context()
		h.apply("beat", schedule.Rule{Every: 50 * time.Millisecond})
		var page queue.Page
		for range 20 { // a slow machine has only begun by then, or has run all that was pushed
			h.run(400 * time.Millisecond)
			s, err := h.schedules.Get(ctx, "beat")
			if err != nil {
				t.Fatal(err)
			}
			if page, err = h.queue.List(ctx, task.Due, queue.ListOptions{Schedule: "beat"}); err != nil {
				t.Fatal(err)
			}
			if s.Runs > 4 && !h.ran("beat").IsZero() && len(page.Tasks) > 0 {
				break
			}
		}
		time.Sleep(300 * time.Millisecond)
		before := h.audit("beat")
		if before.Broken() {
			t.Fatalf("broken before it was broken: %v", before.Breaks)
		}

		// A task that vanishes is a lost slot.
		if len(page.Tasks) == 0 {
			t.Fatal("none is due")
		}
		gone := page.Tasks[0].Task
		rdb.ZRem(ctx, h.queue.Keys().Due(queue.LaneOf(gone)), gone.ID)
		rdb.HDel(ctx, h.queue.Keys().Tasks, gone.ID)
		// A second run that is done is a duplicate; a run off the grid is one too many.
		zero := h.ran("beat").UnixMilli()
		rdb.XAdd(ctx, &redis.XAddArgs{Stream: h.queue.Keys().History, Values: []any{
			"runs", fmt.Sprintf("beat@%d done 1 %d\nbeat@%d done 1 %d", zero, zero+300, zero+7, zero+7), "gen", 1,
		}})

		r := h.audit("beat")
		for v, want := range map[audit.Verdict]int64{audit.Lost: 1, audit.Duplicated: 1, audit.OffGrid: 1} {
			if r.Counts[v] != want {
				t.Errorf("%d %s, want %d: %v", r.Counts[v], v, want, r.Breaks)
			}
		}
		if !r.Broken() || len(r.Breaks) != 3 {
			t.Errorf("breaks = %v, want 3", r.Breaks)
		}
	})
}

func TestRun_callsNothingLostThatTheHistoryHasForgotten(t *testing.T) {
	t.Parallel()
	h := newHouse(t, testredis.Real(t))
	ctx := t.Context()
	h.apply("beat", schedule.Rule{Every: 20 * time.Millisecond})
	history := h.queue.Keys().History
	h.runUntil(40)
	if err := h.rdb.XTrimMaxLen(ctx, history, 5).Err(); err != nil {
		t.Fatal(err)
	}
	info, err := h.rdb.XInfoStream(ctx, history).Result()
	if err != nil {
		t.Fatal(err)
	}
	if info.EntriesAdded == 0 {
		t.Skip("this Redis does not count what was added to a stream")
	}
	r := h.audit("beat")
	if r.Broken() || r.Counts[audit.Unknown] < 10 {
		t.Errorf("%v, %v; want at least 10 unknown and nothing broken", r.Counts, r.Breaks)
	}
}
