package producer

import (
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A caller cannot take a name that the dispatcher gives by itself: a slot would not run, or wait for a stranger's task.
func TestEnqueue_refusesNamesOfTheDispatcher(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Client(t))
	p := w.p
	for what, tk := range map[string]*task.Task{
		"a slot":               task.New("job", nil, task.ID("nightly@1795338400000")),
		"a backfill":           task.New("job", nil, task.ID("nightly@1795338400000+backfill")),
		"a marked slot":        task.New("job", nil, task.ID("nightly@1795338400000+bar")),
		"a trigger":            task.New("job", nil, task.ID("nightly!"+task.NewID(time.Now()))), // its death and its start would be told as the schedule's
		"its unique key":       task.New("job", nil, task.Unique("nightly@1795338400000+backfill", time.Hour)),
		"a slot's unique key":  task.New("job", nil, task.Unique("nightly@1795338400000", time.Hour)),
		"the dispatcher's own": task.New("job", nil, task.Unique("onbeat.x", time.Hour)),
		"a key":                task.New("job", nil, task.Key("schedule:nightly", 1)),
		"a schedule":           {Type: "job", Schedule: "nightly"},
		"a slot's":             {Type: "job", Slot: time.UnixMilli(1)},
		"a message":            task.New("onbeat.notify", nil),
		"its ID":               task.New("job", nil, task.ID("onbeat.notify:ops:dead:60000:1795338400000")),
	} {
		var field *task.FieldError
		if _, err := p.Enqueue(t.Context(), tk); !errors.Is(err, task.ErrInvalid) || !errors.As(err, &field) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := p.EnqueueAll(t.Context(), []*task.Task{task.New("job", nil), tk}); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s, of two: %v", what, err)
		}
	}
	for _, id := range []string{"someone@example.com", "nightly!soon", "a+b"} {
		if _, err := p.Enqueue(t.Context(), task.New("job", nil, task.ID(id), task.Unique(id, time.Minute), task.Key("schedules", 1))); err != nil {
			t.Errorf("an ID that is no slot: %v", err)
		}
	}
}

func TestEnqueue_refusesANilTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Client(t))
	const want = "task: is nil (make one with task.New)"
	for _, opts := range [][]task.Option{nil, {task.In(time.Minute)}} {
		if id, err := w.p.Enqueue(t.Context(), nil, opts...); id != "" || !errors.Is(err, task.ErrInvalid) || err.Error() != want {
			t.Errorf("with %d options: %q, %v", len(opts), id, err)
		}
	}
	results, err := w.p.EnqueueAll(t.Context(), []*task.Task{task.New("job", nil), nil})
	if len(results) != 0 || !errors.Is(err, task.ErrInvalid) || err.Error() != "task 2 of 2: "+want {
		t.Errorf("of two: %v, %v", results, err)
	}
	if n := w.rdb.HLen(t.Context(), w.q.Keys().Tasks).Val(); n != 0 {
		t.Errorf("%d tasks were written", n)
	}
	if err := w.p.Check(nil); !errors.Is(err, task.ErrInvalid) {
		t.Errorf("Check: %v", err)
	}
}
