package consumer

import (
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/task"
)

func TestAlarm(t *testing.T) {
	t.Parallel()
	a := newAlarm()
	defer a.Stop()
	wait := func() time.Time {
		t.Helper()
		late := time.After(patience)
		for {
			select {
			case <-a.timer.C:
				a.Near()
			case <-a.C:
				a.Rang()
				return time.Now()
			case <-late:
				t.Fatal("it never rang")
			}
		}
	}
	at := time.Now().Add(50 * time.Millisecond)
	a.Set(at.Add(time.Hour))
	a.Set(at)
	a.Set(at) // the same again
	if rang := wait(); rang.Before(at) {
		t.Errorf("rang %v early", at.Sub(rang))
	}
	a.Set(time.Now().Add(-time.Second)) // in the past: at once
	wait()
	a.Set(time.Now().Add(20 * time.Millisecond))
	a.Set(time.Time{})
	select {
	case <-a.timer.C:
		t.Error("silenced, and it rings")
	case <-a.C:
		t.Error("silenced, and it rang")
	case <-time.After(100 * time.Millisecond):
	}
}

func TestCancels_neverBlock(t *testing.T) {
	t.Parallel()
	c := newCancels()
	for i := range 1000 {
		c.add(instance.Cancel{Task: "t", Fence: int64(i % 10)})
	}
	<-c.bell
	if n := len(c.take()); n != 10 {
		t.Errorf("%d requests, want 10", n)
	}
	if n := len(c.take()); n != 0 {
		t.Errorf("%d were taken twice", n)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	must(t, Config{}.Validate())
	for field, c := range map[string]Config{
		"concurrency": {Concurrency: -1}, "queues": {Queues: map[string]int{"a b": 1}}, "queues.a": {Queues: map[string]int{"a": 0}},
		"limits": {Limits: map[string]int{"": 1}}, "limits.t": {Limits: map[string]int{"t": 0}},
	} {
		_, err := New(nil, "shop", nil, c)
		var e *task.FieldError
		if !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if c := (Config{Drain: -1}).withDefaults(); c.Drain != 0 || c.Concurrency != 10 {
		t.Errorf("%+v", c)
	}
}
