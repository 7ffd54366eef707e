package onbeat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

const patience = 30 * time.Second

func TestRun_refusesAScheduleWhoseTypeHasNoHandlerHere(t *testing.T) {
	t.Parallel()
	every := schedule.Every(time.Hour)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Release: "v1"})
	must(t, d.Schedule("later", every, "invoice.send", nil)) // its handler comes later
	must(t, d.Schedule("wrong", every, "invoice.sent", nil))
	must(t, d.Handle("invoice.send", handlers.Func(nothing)))
	err := d.Run(t.Context())
	var wrong *task.FieldError
	if !errors.As(err, &wrong) || wrong.Field != "task" || wrong.Value != "invoice.sent" || !strings.Contains(wrong.Hint, "invoice.send") || strings.Contains(err.Error(), "later") {
		t.Fatalf("run: %v", err)
	}

	right := []onbeat.Schedule{{Name: "wrong", Rule: every, Task: "invoice.sent", Elsewhere: true}}
	must(t, d.Declare(right))
	run(t, d)
	testredis.Eventually(t, patience, func() bool { return d.Unready() == nil }, "it runs")
	if err := d.Declare([]onbeat.Schedule{{Name: "wrong", Rule: every, Task: "invoice.sent"}}); !errors.Is(err, task.ErrInvalid) || len(d.Declared()) != 1 || !d.Declared()[0].Elsewhere {
		t.Errorf("declare while it runs: %v", err)
	}
	must(t, d.Declare(right))
}

func dispatcher(t *testing.T, rdb redis.UniversalClient, c onbeat.Config) *onbeat.Dispatcher {
	t.Helper()
	if c.Namespace == "" {
		c.Namespace = testredis.Namespace(t)
	}
	d, err := onbeat.New(rdb, c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// run runs a dispatcher until stop, or the end of the test.
func run(t *testing.T, d *onbeat.Dispatcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- d.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-over; err != nil {
				t.Errorf("run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func nothing(context.Context, *task.Task) error { return nil }

// hourly is a handler that says its own schedule and payload.
type hourly struct{ ran atomic.Pointer[task.Task] }

func (h *hourly) Schedule() schedule.Rule { return schedule.Every(time.Hour) }
func (h *hourly) Payload() any            { return map[string]int{"n": 7} }
func (h *hourly) Handle(_ context.Context, t *task.Task) error {
	seen := *t
	h.ran.Store(&seen)
	return nil
}

func TestHandle_whatSaysItsScheduleIsScheduled(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{})
	h := &hourly{}
	var order []string
	d.Use(func(next handlers.TaskHandler) handlers.TaskHandler {
		return handlers.Wrap(next, func(ctx context.Context, t *task.Task) error {
			order = append(order, "middleware")
			return next.Handle(ctx, t)
		})
	})
	if err := d.Handle("hourly.job", h); err != nil {
		t.Fatal(err)
	}
	stop := run(t, d)
	testredis.Eventually(t, patience, func() bool { return h.ran.Load() != nil }, "it runs at once")
	stop()
	got := h.ran.Load()
	if got.Schedule != "hourly.job" || string(got.Payload) != `{"n":7}` || got.Slot.IsZero() || len(order) != 1 {
		t.Errorf("%+v, %v", got, order)
	}
	s, err := d.Schedules().Get(t.Context(), "hourly.job")
	if err != nil || !s.Anchor.Equal(got.Slot) || s.Origin != producer.Declared {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRegistration_refusals(t *testing.T) {
	t.Parallel()
	every := schedule.Every(time.Hour)
	for name, register := range map[string]func(*onbeat.Dispatcher) error{
		"a type twice": func(d *onbeat.Dispatcher) error {
			_ = d.Handle("a", handlers.Func(nothing))
			return d.Handle("a", handlers.Func(nothing))
		},
		"a nil handler":     func(d *onbeat.Dispatcher) error { return d.Handle("a", nil) },
		"a bad rule":        func(d *onbeat.Dispatcher) error { return d.Schedule("s", schedule.Cron("nonsense", nil), "a", nil) },
		"a bad name":        func(d *onbeat.Dispatcher) error { return d.Schedule("a b", every, "a", nil) },
		"no type":           func(d *onbeat.Dispatcher) error { return d.Schedule("s", every, "", nil) },
		"a bad payload":     func(d *onbeat.Dispatcher) error { return d.Schedule("s", every, "a", func() {}) },
		"a payload too big": func(d *onbeat.Dispatcher) error { return d.Schedule("s", every, "a", strings.Repeat("x", 200)) },
		"an option that would be ignored": func(d *onbeat.Dispatcher) error {
			return d.Schedule("s", every, "a", nil, task.In(time.Minute))
		},
		"a schedule twice": func(d *onbeat.Dispatcher) error {
			_ = d.Schedule("s", every, "a", nil)
			return d.Schedule("s", every, "a", nil)
		},
		"a payload its handler cannot use": func(d *onbeat.Dispatcher) error {
			_ = d.Handle("typed", handlers.Typed(func(context.Context, struct{ N int }) error { return nil }))
			return d.Schedule("s", every, "typed", []string{"no"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := dispatcher(t, testredis.Client(t), onbeat.Config{PayloadLimit: 100})
			err := register(d)
			if err == nil {
				t.Fatal("was not refused")
			}
			if ran := d.Run(t.Context()); ran == nil || !strings.Contains(ran.Error(), err.Error()) {
				t.Errorf("Run returned %v, want %v", ran, err)
			}
		})
	}
}

func TestNew_refusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]onbeat.Config{
		"no namespace": {}, "lead": {Namespace: "n", Lead: "oldest"}, "concurrency": {Namespace: "n", Concurrency: -1},
		"payload limit": {Namespace: "n", PayloadLimit: -1}, "braces": {Namespace: "{n}"},
	} {
		_, err := onbeat.New(testredis.Client(t), c)
		var field *task.FieldError
		if !errors.As(err, &field) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDeclare(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{})
	one := producer.Schedule{Elsewhere: true, Name: "one", Task: "a", Rule: schedule.Every(time.Hour)}
	two := producer.Schedule{Elsewhere: true, Name: "two", Task: "a", Rule: schedule.Every(time.Hour), Payload: json.RawMessage(`1`)}
	for _, list := range [][]producer.Schedule{{one, one}, {one, {Name: "bad"}}} {
		if err := d.Declare(list); err == nil {
			t.Errorf("%v was declared", list)
		}
	}
	names := func() string {
		list, err := d.Schedules().List(t.Context())
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		for _, s := range list {
			fmt.Fprint(&b, s.Schedule.Name, " ")
		}
		return b.String()
	}
	if err := d.Declare([]producer.Schedule{one}); err != nil {
		t.Fatal(err)
	}
	run(t, d)
	testredis.Eventually(t, patience, func() bool { return names() == "one " }, "the first is declared")
	if err := d.Declare([]producer.Schedule{two}); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, patience, func() bool { return names() == "two " }, "the second takes its place")
}

// A line about a run that failed says which run it was.
func TestRun_aFailureIsLoggedWithItsRun(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	d := dispatcher(t, testredis.Client(t), onbeat.Config{Release: "v7", Log: zerolog.New(zerolog.SyncWriter(&text))})
	ended := make(chan struct{})
	var once sync.Once
	must(t, d.Handle("job", handlers.Func(func(_ context.Context, t *task.Task) error {
		if t.Attempt == 2 {
			once.Do(func() { close(ended) })
			return handlers.Dead(errors.New("no such order"))
		}
		return errors.New("busy")
	})))
	must(t, d.Schedule("orders", schedule.Every(time.Hour), "job", nil, task.Retry(10*time.Millisecond, time.Second)))
	stop := run(t, d)
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("no second attempt")
	}
	stop() // a run that has ended is settled
	attempt := map[string]float64{"run failed": 1, "task is dead": 2}
	for line := range bytes.Lines(text.Bytes()) {
		var got map[string]any
		must(t, json.Unmarshal(line, &got))
		want, ours := attempt[fmt.Sprint(got["message"])]
		if !ours {
			continue
		}
		delete(attempt, fmt.Sprint(got["message"]))
		if got["schedule"] != "orders" || got["task"] == nil || got["type"] != "job" || got["attempt"] != want || got["release"] != "v7" {
			t.Errorf("%s", line)
		}
	}
	if len(attempt) > 0 {
		t.Errorf("no lines for %v in\n%s", attempt, text.String())
	}
}

// Only a nil list is no declaration.
func TestDeclare_nilDeclaresNothing(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{})
	if d.Declared() == nil {
		t.Error("without schedules, a release declares that there are none")
	}
	for _, list := range [][]onbeat.Schedule{nil, {}, nil} {
		if err := d.Declare(list); err != nil || (d.Declared() == nil) != (list == nil) {
			t.Errorf("%#v is declared as %#v, %v", list, d.Declared(), err)
		}
	}
	if err := d.Schedule("s", schedule.Every(time.Hour), "t", nil); err != nil || len(d.Declared()) != 1 {
		t.Errorf("%v, %v", d.Declared(), err)
	}
}

// TestPromise7_rollingUpdate rolls releases over a schedule: each slot runs once, on its grid, never early.
func TestPromise7_rollingUpdate(t *testing.T) {
	t.Parallel()
	wantRollingUpdate(t, testredis.Real(t))
}

// TestPromise10_memoryIsBounded runs 5,000 tasks and 1,000 slots and looks at what is left.
func TestPromise10_memoryIsBounded(t *testing.T) {
	t.Parallel()
	rdb, ns := testredis.Real(t), testredis.Namespace(t)
	d := dispatcher(t, rdb, onbeat.Config{
		Namespace: ns, Concurrency: 100, Caps: onbeat.Caps{Dead: 50, Done: 60, History: 100, Events: 100}, Consume: instance.ConsumeAll,
	})
	var slots, tasks atomic.Int32
	if err := errors.Join(
		d.Handle("slot", handlers.Func(func(context.Context, *task.Task) error { slots.Add(1); return nil })),
		d.Handle("job", handlers.Func(func(_ context.Context, tk *task.Task) error {
			if tasks.Add(1)%10 == 0 {
				return handlers.Dead(errors.New("every tenth"))
			}
			return nil
		})),
		d.Schedule("beat", schedule.Rule{Every: 5 * time.Millisecond, MaxRuns: 1000}, "slot", nil),
	); err != nil {
		t.Fatal(err)
	}
	stop := run(t, d)
	for range 5 {
		var list []*task.Task
		for i := range 1000 {
			tk := task.New("job", nil)
			if i%5 == 0 {
				tk.Keep = time.Hour
			}
			list = append(list, tk)
		}
		if _, err := d.EnqueueAll(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	k := d.Queue().Keys()
	left := func() int64 { return rdb.HLen(t.Context(), k.Tasks).Val() }
	testredis.Eventually(t, patience, func() bool { return slots.Load() == 1000 && tasks.Load() == 5000 && left() <= 110 }, "all run and leave")
	stop()
	if dead, done := rdb.ZCard(t.Context(), k.Dead).Val(), rdb.ZCard(t.Context(), k.Done).Val(); dead != 50 || done != 60 || left() != dead+done {
		t.Errorf("%d dead, %d done, %d records", dead, done, left())
	}
	for _, stream := range []string{k.History, k.Events} {
		if n := rdb.XLen(t.Context(), stream).Val(); n > 300 { // a cap is kept to a node of the stream, of about a hundred
			t.Errorf("%s has %d entries", stream, n)
		}
	}
	known := map[string]bool{}
	for _, key := range []string{k.Tasks, k.Lanes, k.Dead, k.Done, k.Schedules, k.Last, k.Changed, k.Leader, k.Releases, k.Meta, k.Events, k.History, k.Revisions, k.Health} {
		known[key] = true
	}
	for _, key := range rdb.Keys(t.Context(), "onbeat:{"+ns+"}:*").Val() {
		if !known[key] {
			t.Errorf("%s is left over, a %s", key, rdb.Type(t.Context(), key).Val())
		}
	}
}

// A caller that changes its list later changes no schedule.
func TestDeclare_keepsNothingOfTheCallers(t *testing.T) {
	t.Parallel()
	d := dispatcher(t, testredis.Client(t), onbeat.Config{})
	list := []onbeat.Schedule{{Name: "s", Rule: schedule.Every(time.Hour), Task: "t", Payload: []byte(`{"n":1}`), Secret: []string{"n"}}}
	if err := errors.Join(d.Handle("t", handlers.Func(nothing)), d.Declare(list)); err != nil {
		t.Fatal(err)
	}
	copy(list[0].Payload, `{"n":2}`)
	list[0].Secret[0], list[0].Task = "m", "other"
	run(t, d)
	testredis.Eventually(t, patience, func() bool {
		s, err := d.Schedules().Get(t.Context(), "s")
		return err == nil && s.Schedule.Task == "t" && string(s.Schedule.Payload) == `{"n":1}` && slices.Equal(s.Schedule.Secret, []string{"n"})
	}, "the schedule is as it was declared")
}
