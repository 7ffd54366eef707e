package onbeattest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/consumer"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/onbeattest"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

var errBusy = errors.New("busy")

type order struct {
	Number string `json:"number"`
}

func TestRun_saysWhatBecomesOfATask(t *testing.T) {
	t.Parallel()
	fails := func(err error) handlers.TaskHandler {
		return handlers.Func(func(context.Context, *task.Task) error { return err })
	}
	for name, c := range map[string]struct {
		h    handlers.TaskHandler
		run  *task.Task
		want onbeattest.Outcome
	}{
		"no error":             {fails(nil), task.New("x", nil), onbeattest.Outcome{State: onbeattest.Done}},
		"an error":             {fails(errBusy), task.New("x", nil), onbeattest.Outcome{State: onbeattest.Retried, Err: errBusy, After: time.Second}},
		"a delay":              {fails(handlers.RetryAfter(errBusy, time.Hour)), task.New("x", nil), onbeattest.Outcome{State: onbeattest.Retried, Err: errBusy, After: time.Hour}},
		"the third attempt":    {fails(errBusy), &task.Task{Type: "x", Attempt: 3}, onbeattest.Outcome{State: onbeattest.Retried, Err: errBusy, After: 4 * time.Second}},
		"the last attempt":     {fails(errBusy), &task.Task{Type: "x", Attempt: 3, MaxAttempts: 3}, onbeattest.Outcome{State: onbeattest.Dead, Err: errBusy}},
		"dead at once":         {fails(handlers.Dead(errBusy)), task.New("x", nil), onbeattest.Outcome{State: onbeattest.Dead, Err: errBusy}},
		"a type of no name":    {fails(nil), task.New("", nil), onbeattest.Outcome{State: onbeattest.Refused, Err: task.ErrInvalid}},
		"a payload of no use":  {handlers.Typed(func(context.Context, order) error { return nil }), task.New("x", map[string]any{"nummer": 1}), onbeattest.Outcome{State: onbeattest.Refused, Err: task.ErrInvalid}},
		"a run that times out": {handlers.Func(func(ctx context.Context, _ *task.Task) error { <-ctx.Done(); return context.Cause(ctx) }), &task.Task{Type: "x", Timeout: time.Millisecond}, onbeattest.Outcome{State: onbeattest.Retried, Err: consumer.ErrTimeout, After: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := onbeattest.Run(t, c.h, c.run)
			if got.State != c.want.State || !errors.Is(got.Err, c.want.Err) || got.After != c.want.After {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestRun_knowsTheSlotAndTheOutput(t *testing.T) {
	t.Parallel()
	slot := time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)
	mux := handlers.NewMux()
	mux.Use(handlers.Recover())
	if err := mux.Handle("report", handlers.Func(func(ctx context.Context, run *task.Task) error {
		handlers.Output(ctx, handlers.FromContext(ctx).ID)
		if run.Attempt > 1 {
			panic("no second attempt")
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	one := &task.Task{Type: "report", Schedule: "nightly", Slot: slot}
	if got := onbeattest.Run(t, handlers.Func(mux.Serve), one); got.State != onbeattest.Done || got.Output != task.SlotID("nightly", slot) {
		t.Errorf("%+v", got)
	}
	if one.ID != "" || one.Attempt != 0 {
		t.Errorf("the test's own task was changed: %+v", one)
	}
	one.Attempt = 2
	got := onbeattest.Run(t, handlers.Func(mux.Serve), one)
	if p, ok := errors.AsType[*handlers.PanicError](got.Err); !ok || got.State != onbeattest.Retried || !strings.Contains(p.Error(), "no second attempt") {
		t.Errorf("%+v", got)
	}
}

func TestStart_runsHoursOfAScheduleAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slots []time.Time
		d := onbeattest.New(t, onbeat.Config{})
		if err := d.Handle("report", handlers.Func(func(_ context.Context, run *task.Task) error {
			slots = append(slots, run.Slot)
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		if err := d.Schedule("hourly", schedule.Cron("0 * * * *", time.UTC), "report", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // the bubble begins at midnight, which would be a slot
		onbeattest.Start(t, d)
		began := time.Now()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if len(slots) != 3 {
			t.Fatalf("%d slots ran, want 3: %v", len(slots), slots)
		}
		for i, slot := range slots {
			if want := began.Truncate(time.Hour).Add(time.Duration(i+1) * time.Hour); !slot.Equal(want) {
				t.Errorf("slot %d is of %v, want %v", i, slot, want)
			}
		}
	})
}

func TestStart_runsWhatIsEnqueuedAlsoByTheRealClock(t *testing.T) {
	t.Parallel()
	var ran atomic.Int32
	done := make(chan struct{})
	d := onbeattest.New(t, onbeat.Config{})
	if err := d.Handle("x", handlers.Func(func(context.Context, *task.Task) error {
		if ran.Add(1) == 3 {
			close(done)
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	onbeattest.Start(t, d)
	for range 3 {
		if _, err := d.Enqueue(t.Context(), task.New("x", nil)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Errorf("%d of 3 tasks ran", ran.Load())
	}
}
