package audit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// release runs an instance of a release, which declares schedules, until it is told to stop.
func (h *house) release(name string, declared map[string]schedule.Rule) (stop func()) {
	h.Helper()
	d, err := onbeat.New(h.rdb, onbeat.Config{Namespace: h.ns, Release: name, Lease: time.Second})
	if err != nil {
		h.Fatal(err)
	}
	if err := d.Handle("beat", handlers.Func(func(context.Context, *task.Task) error { return nil })); err != nil {
		h.Fatal(err)
	}
	for name, rule := range declared {
		if err := d.Schedule(name, rule, "beat", nil); err != nil {
			h.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(h.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			h.Error(err)
		}
	}
}

// A rollout that is undone: each slot of the time in which a schedule was retired is accounted for, also if the rule is
// another when it comes back, and if it was paused or had had all its runs.
func TestRun_acceptsASchedulesReturn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, testredis.Real(t))
	every := func(d time.Duration) schedule.Rule { return schedule.Rule{Every: d} }
	over := every(20 * time.Millisecond)
	over.MaxRuns = 5
	rules := map[string]schedule.Rule{
		"goes": every(20 * time.Millisecond), "paused": every(20 * time.Millisecond), "over": over, "turns": every(20 * time.Millisecond),
	}
	one := h.release("v1", rules)
	testredis.Eventually(t, time.Minute, func() bool {
		list, err := h.schedules.List(h.Context())
		return err == nil && len(list) == len(rules) && !slices.ContainsFunc(list, func(s producer.Status) bool { return s.Runs < over.MaxRuns })
	}, "they run")
	if _, err := h.schedules.Pause(h.Context(), "paused", ""); err != nil {
		t.Fatal(err)
	}
	time.Sleep(300 * time.Millisecond)
	was, err := h.schedules.Get(h.Context(), "turns")
	if err != nil {
		t.Fatal(err)
	}
	two := h.release("v2", nil)
	time.Sleep(700 * time.Millisecond)
	for name := range rules {
		if r := h.audit(name); r.Broken() {
			t.Errorf("%s, retired: %+v", name, r)
		}
	}
	one()
	rules["turns"] = every(30 * time.Millisecond)
	one = h.release("v1", rules) // which left, and is newest again
	testredis.Eventually(t, 20*time.Second, func() error {
		for name := range rules {
			if s, err := h.schedules.Get(h.Context(), name); err != nil || s.Retired != nil {
				return fmt.Errorf("%s: retired %+v, %v", name, s.Retired, err)
			}
		}
		return nil
	}, "its schedules come back")
	time.Sleep(100 * time.Millisecond)
	if _, err := h.schedules.Resume(h.Context(), "paused"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	two()
	one()
	time.Sleep(10 * time.Millisecond)
	for name := range rules {
		r := h.audit(name)
		if r.Broken() || r.Counts[audit.Unknown] > 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if name == "over" {
			continue
		}
		if n := r.Counts[audit.Changed] + r.Counts[audit.Paused]; n < 10 || n > 200 {
			t.Errorf("%s: %d slots are changed or paused, of those of 0.7 s: %+v", name, n, r)
		}
	}
	s, err := h.schedules.Get(h.Context(), "turns")
	if err != nil || !s.Anchor.Equal(was.Anchor) || s.Schedule.Every != 30*time.Millisecond {
		t.Errorf("turns came back as %+v, %v; its anchor was %v", s, err, was.Anchor)
	}
	if s, err := h.schedules.Get(h.Context(), "over"); err != nil || s.Runs != 5 || !s.Next.IsZero() {
		t.Errorf("over came back as %+v, %v", s, err)
	}
}
