package onbeat_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// The way to a larger number of partitions, as docs/scaling.md has it: a second namespace takes over each schedule at a slot of its grid,
// and the first one runs empty. No slot is missed, moved or doubled, and no task is lost.
func TestPartitions_aSecondNamespaceTakesOver(t *testing.T) {
	t.Parallel()
	const every, beats = 200 * time.Millisecond, 6
	rdb := testredis.Private(t).Client()
	old := testredis.Namespace(t)
	larger := old + "-2"
	var mu sync.Mutex
	ran := map[string][]time.Time{} // the slots of each schedule, in either namespace
	jobs := map[string]int{}
	start := func(ns string, partitions int) *onbeat.Dispatcher {
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Partitions: partitions, Release: "v1", Concurrency: 8})
		if err != nil {
			t.Fatal(err)
		}
		h := handlers.Func(func(_ context.Context, tk *task.Task) error {
			mu.Lock()
			defer mu.Unlock()
			if tk.Schedule == "" {
				jobs[tk.ID]++
			} else {
				ran[tk.Schedule] = append(ran[tk.Schedule], tk.Slot)
			}
			return nil
		})
		if err := d.Handle("job", h); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		return d
	}
	rule := func(d *onbeat.Dispatcher, of func(name string) schedule.Rule) {
		t.Helper()
		var list []onbeat.Schedule
		for i := range beats {
			name := fmt.Sprint("beat-", i)
			list = append(list, onbeat.Schedule{Name: name, Rule: of(name), Task: "job"})
		}
		if err := d.Declare(list); err != nil {
			t.Fatal(err)
		}
	}
	slots := func(name string) []time.Time {
		mu.Lock()
		defer mu.Unlock()
		list := slices.Clone(ran[name])
		slices.SortFunc(list, time.Time.Compare)
		return list
	}
	a := start(old, 2)
	rule(a, func(string) schedule.Rule { return schedule.Every(every) }) // a grid of its own, from when it is first applied
	for i := range 50 {
		if _, err := a.Enqueue(t.Context(), task.New("job", nil, task.ID(fmt.Sprint("old-", i)), task.In(time.Duration(i)*100*time.Millisecond))); err != nil {
			t.Fatal(err)
		}
	}
	testredis.Eventually(t, 30*time.Second, func() bool { return len(slots("beat-0")) > 3 }, "the old namespace does not beat")

	// The new namespace runs. Then it takes over at a slot of each schedule, so late that also a busy machine has made both changes before.
	b := start(larger, 4)
	if _, err := b.Enqueue(t.Context(), task.New("job", nil, task.ID("new"))); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 30*time.Second, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return jobs["new"] == 1
	}, "the new namespace does not run")
	from := map[string]time.Time{}
	rule(a, func(name string) schedule.Rule {
		s, err := a.Admin().Schedules.Get(t.Context(), name)
		if err != nil || s.Next.IsZero() {
			t.Fatal(s, err)
		}
		from[name] = s.Next.Add(40 * every)
		r := schedule.Every(every)
		r.Until = from[name].Add(-time.Millisecond)
		return r
	})
	rule(b, func(name string) schedule.Rule {
		r := schedule.Every(every)
		r.Start = from[name].UTC().Format(time.RFC3339Nano)
		return r
	})
	testredis.Eventually(t, 60*time.Second, func() bool {
		list := slots("beat-0")
		return len(list) > 0 && list[len(list)-1].After(from["beat-0"].Add(10*every))
	}, "the new namespace does not beat")
	testredis.Eventually(t, 30*time.Second, func() error {
		c, err := a.Admin().Activity.Counts(t.Context())
		if c.Waiting+c.Later+c.Running > 0 {
			return fmt.Errorf("the old namespace is not empty: %+v", c)
		}
		return err
	}, "it does not run empty")
	for name := range from {
		list := slots(name)
		for i := 1; i < len(list); i++ {
			if gap := list[i].Sub(list[i-1]); gap != every && list[i].Before(from[name].Add(5*every)) {
				t.Errorf("%s: %v after %v, which is %v; the new namespace takes over at %v", name, list[i], list[i-1], gap, from[name])
			}
		}
	}
	wantOnBeat(t, a.Admin(), beats)
	wantOnBeat(t, b.Admin(), beats)
	mu.Lock()
	defer mu.Unlock()
	for id, n := range jobs {
		if n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	if len(jobs) != 51 {
		t.Errorf("%d tasks ran", len(jobs))
	}
}
