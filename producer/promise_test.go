package producer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// TestPromise1_aSlotIsPushedAtMostOnce: an old leader is refused, and of two that hold the same term one is faster.
func TestPromise1_aSlotIsPushedAtMostOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	w.apply("s", schedule.Every(time.Millisecond))
	old := w.lead("old", "", nil)
	must(t, old.takeStock(ctx))
	must(t, old.push(ctx))
	before, _ := w.account("s")

	present := w.lead("new", "", nil)
	must(t, present.takeStock(ctx))
	if err := old.push(ctx); err != nil && !errors.Is(err, queue.ErrNotLeader) {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond) // slots of a fresh stretch
	if err := old.push(ctx); !errors.Is(err, queue.ErrNotLeader) {
		t.Fatalf("the old leader pushes: %v", err)
	}
	if n, _ := w.account("s"); n != before {
		t.Fatalf("the old leader pushed %d slots", n-before)
	}

	// Two processes that both believe to be "new", such as a machine that was cloned: one compare-and-set wins.
	twin := *present
	twin.entries, twin.plan = nil, nil
	must(t, twin.takeStock(ctx))
	time.Sleep(200 * time.Millisecond)
	must(t, present.push(ctx))
	run := w.pushed("s") // the twin does not know of these
	for ms := range run {
		must(t, w.rdb.HDel(ctx, w.q.Keys().Tasks, task.SlotID("s", time.UnixMilli(ms))).Err())
	}
	must(t, twin.push(ctx))
	for ms := range w.pushed("s") {
		if run[ms] {
			t.Fatalf("slot %d was pushed twice", ms)
		}
	}
	stale := *present // of an earlier term of the same instance
	stale.entries, stale.plan = nil, nil
	must(t, stale.takeStock(ctx))
	stale.term.Epoch--
	time.Sleep(200 * time.Millisecond)
	if err := stale.push(ctx); !errors.Is(err, queue.ErrNotLeader) {
		t.Fatalf("an earlier epoch pushes: %v", err)
	}
	gone := len(run)

	var wg sync.WaitGroup
	for _, tn := range []*term{present, &twin} {
		wg.Go(func() {
			for range 20 {
				if err := tn.push(ctx); err != nil {
					t.Error(err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	st, err := w.q.Schedule(ctx, "s")
	must(t, err)
	last, err := queue.ParseLast(st.Last)
	must(t, err)
	if n := len(w.pushed("s")) + gone; last.Runs != int64(n) {
		t.Errorf("%d slots were pushed, %d were counted", n, last.Runs)
	}
}

// dying fails a command, before or after Redis has seen it, once its life is over.
type dying struct {
	life  atomic.Int64
	after bool
}

var errKilled = errors.New("killed")

func (d *dying) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *dying) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		left := d.life.Add(-1)
		if left < 0 && !(left == -1 && d.after) {
			cmd.SetErr(errKilled)
			return errKilled
		}
		err := next(ctx, cmd)
		if left < 0 {
			cmd.SetErr(errKilled)
			return errKilled
		}
		return err
	}
}

func (d *dying) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if d.life.Add(-1) < 0 {
			return errKilled
		}
		return next(ctx, cmds)
	}
}

// TestPromise2_everySlotIsAccountedFor kills the leader at random commands, again and again, and lets a while pass in
// which no instance leads.
func TestPromise2_everySlotIsAccountedFor(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	rules := map[string]schedule.Rule{
		"once": {Every: 3 * time.Millisecond}, "all": {Every: 5 * time.Millisecond, Missed: schedule.MissedAll},
		"all.short": {Every: 7 * time.Millisecond, Missed: schedule.MissedAll, CatchUp: 1200 * time.Millisecond},
		"skip":      {Every: 11 * time.Millisecond, Missed: schedule.MissedSkip},
		"cron":      {Cron: "* * * * * *"}, "jitter": {Every: 40 * time.Millisecond, Jitter: 30 * time.Millisecond},
	}
	for name, r := range rules {
		w.apply(name, r)
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 30 {
		killed := &dying{after: rng.IntN(2) == 0}
		killed.life.Store(rng.Int64N(40))
		client := testredis.Client(t)
		client.AddHook(killed)
		q, err := queue.New(client, queue.Partition{Namespace: w.ns}, queue.Caps{})
		must(t, err)
		tn := w.leadOver(q, fmt.Sprint("leader", round), "", nil)
		tn.open = rng.IntN(3) > 0 // as if there had been a time with no leader
		err = tn.takeStock(t.Context())
		for err == nil {
			err = tn.push(t.Context())
			time.Sleep(time.Millisecond)
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		if round%10 == 9 {
			time.Sleep(2 * time.Second)
		}
	}
	tn := w.lead("last", "", nil)
	tn.open = false
	must(t, tn.takeStock(t.Context()))
	must(t, tn.push(t.Context()))
	for name := range rules {
		pushed, noted := w.account(name)
		if pushed == 0 || noted == 0 && name != "all" && name != "cron" && name != "jitter" {
			t.Errorf("%s: %d pushed, %d noted: nothing was put to the test", name, pushed, noted)
		}
		if name == "all" && noted > 0 {
			t.Errorf("all: %d slots did not run", noted)
		}
	}
}

// TestPromise7_theGridHolds restarts and replaces leaders; each slot stays anchor + k * interval.
func TestPromise7_theGridHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	const every = 70 * time.Millisecond
	declared := func() []Schedule {
		return []Schedule{{Name: "beat", Rule: schedule.Rule{Every: every, Missed: schedule.MissedAll}, Task: "job"}}
	}
	n := w.start("v1", declared)
	w.leads(n)
	s, err := w.Get(t.Context(), "beat")
	must(t, err)
	anchor := s.Anchor
	for i := range 4 { // rolling, then a gap
		next := w.start(fmt.Sprint("v", i+2), declared)
		w.leads(next)
		n.stop()
		n = next
	}
	n.stop()
	time.Sleep(300 * time.Millisecond)
	n = w.start("v9", declared)
	w.leads(n)
	n.stop()
	pushed, noted := w.account("beat")
	if pushed < 20 || noted != 0 {
		t.Errorf("%d pushed, %d noted", pushed, noted)
	}
	for ms := range w.pushed("beat") {
		if (ms-anchor.UnixMilli())%every.Milliseconds() != 0 {
			t.Errorf("slot %d is not on the grid of %d", ms, anchor.UnixMilli())
		}
	}
	if s, err = w.Get(t.Context(), "beat"); err != nil || !s.Anchor.Equal(anchor) {
		t.Errorf("the anchor moved from %v to %v (%v)", anchor, s.Anchor, err)
	}
}

func declare(list ...string) func() []Schedule {
	out := []Schedule{}
	for _, name := range list {
		out = append(out, Schedule{Name: name, Rule: schedule.Every(time.Hour), Task: "job"})
	}
	return func() []Schedule { return out }
}

func (w *world) stored() string {
	w.Helper()
	list, err := w.List(context.Background())
	must(w, err)
	return names(list)
}

// A release that declares nothing retires nothing. One that declares an empty list retires all.
func TestDeclare_nothingRetiresNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Client(t))
	ctx := t.Context()
	must(t, w.lead("one", "v1", declare("a", "b")).takeStock(ctx))
	must(t, w.lead("two", "v2", func() []Schedule { return nil }).takeStock(ctx))
	if got := w.stored(); got != "a b" {
		t.Errorf("a release that declares nothing leaves %q", got)
	}
	must(t, w.lead("three", "v3", declare()).takeStock(ctx))
	if got := w.stored(); got != "" {
		t.Errorf("an empty list leaves %q", got)
	}
}

func TestPromise9_olderNeverOverwritesNewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	want := func(when, list string) {
		t.Helper()
		if got := w.stored(); got != list {
			t.Fatalf("%s: %q, want %q", when, got, list)
		}
	}
	w.apply("by-hand", schedule.Every(time.Hour))
	one := w.lead("one", "v1", declare("a", "b"))
	must(t, one.takeStock(ctx))
	want("v1 leads", "a b by-hand")
	_, err := w.Pause(ctx, "a", "")
	must(t, err)

	two := w.lead("two", "v2", declare("a", "c"))
	must(t, two.takeStock(ctx))
	want("v2 leads: b is retired", "a by-hand c")
	if s, err := w.Get(ctx, "a"); err != nil || !s.Paused {
		t.Errorf("a: paused %v, %v", s.Paused, err)
	}
	lost := func(ago time.Duration) {
		t.Helper()
		must(t, w.rdb.Del(ctx, w.q.Keys().Trial).Err()) // after it had been ready for long
		end := w.now().Add(-ago).UnixMilli()
		must(t, w.rdb.ZAdd(ctx, w.q.Keys().Instances, redis.Z{Score: float64(end), Member: "two"}).Err())
	}
	lost(0)
	v, err := w.reg.Heartbeat(ctx, "one", one.term.Gen, time.Minute, time.Time{}, "")
	must(t, err)
	if v.Leader != "one" {
		t.Fatalf("%q leads", v.Leader)
	}
	again := *one
	again.term.Epoch, again.began = v.Epoch, time.Time{}
	must(t, again.takeStock(ctx))
	want("v1 leads because v2 was lost: nothing changes", "a by-hand c")

	w.lead("two", "v2", declare("a", "c"))
	lost(time.Minute + time.Second)
	v, err = w.reg.Heartbeat(ctx, "one", one.term.Gen, time.Minute, time.Time{}, "")
	must(t, err)
	again.term.Epoch = v.Epoch
	must(t, again.takeStock(ctx))
	want("v2 has been lost for a minute", "a b by-hand")
	two = w.lead("two", "v2", declare("a", "c"))
	must(t, two.takeStock(ctx))
	want("v2 is back", "a by-hand c")

	// A rollback: v1 was away, and is newest again.
	_, err = w.reg.Deregister(ctx, "one", one.term.Gen)
	must(t, err)
	back := w.lead("three", "v1", declare("a", "b"))
	must(t, back.takeStock(ctx))
	want("v1 is rolled back to", "a b by-hand")
	if s, err := w.Get(ctx, "a"); err != nil || !s.Paused || s.Release != "v1" {
		t.Errorf("a: paused %v, of %s, %v", s.Paused, s.Release, err)
	}

	none := w.lead("four", "v3", func() []Schedule { return nil })
	must(t, none.takeStock(ctx))
	want("one that declares nothing lets others be", "a b by-hand")
	empty := w.lead("five", "v4", declare())
	must(t, empty.takeStock(ctx))
	want("one that declares that there are none", "by-hand")
}

func TestDeclare_leavesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	ctx := t.Context()
	one := w.lead("one", "v1", declare("mine", "theirs"))
	must(t, one.takeStock(ctx))
	newer := `{"v":2,"origin":"declared","what":"ever"}`
	for _, name := range []string{"mine", "theirs"} {
		must(t, w.rdb.HSet(ctx, w.q.Keys().Schedules, name, newer).Err())
	}
	two := w.lead("two", "v2", declare("mine"))
	must(t, two.takeStock(ctx))
	if got := w.rdb.HGet(ctx, w.q.Keys().Schedules, "theirs").Val(); got != newer {
		t.Errorf("theirs became %s", got)
	}
	if s, err := w.Get(ctx, "mine"); err != nil || s.Origin != Declared || s.Release != "v2" {
		t.Errorf("mine: %+v, %v", s, err)
	}
	list, err := w.List(ctx)
	if names(list) != "mine" || err == nil {
		t.Errorf("listed %q, and reported %v", names(list), err)
	}
	if two.entries["theirs"] != nil || two.entries["mine"] == nil {
		t.Errorf("it leads with %v", two.entries)
	}
}
