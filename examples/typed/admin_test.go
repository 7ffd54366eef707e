package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/onbeattest"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func TestRetryDead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := onbeattest.New(t, onbeat.Config{})
		d.Handle("invoice.send", handlers.Typed(sendInvoice))
		d.Schedule("warm-up", schedule.Every(time.Minute), "invoice.send", Invoice{Number: "test"})
		onbeattest.Start(t, d)
		id, err := d.Enqueue(t.Context(), task.New("invoice.send", Invoice{}))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		died, err := d.Admin().Tasks.Get(t.Context(), id)
		if err != nil || len(died.Failures) != 1 {
			t.Fatalf("it is not dead: %+v, %v", died, err)
		}
		if err := retryDead(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		again, err := d.Admin().Tasks.Get(t.Context(), id)
		if err != nil || len(again.Failures) != 2 {
			t.Errorf("it was not retried: %+v, %v", again, err)
		}
		s, err := d.Admin().Schedules.Get(t.Context(), "warm-up")
		if err != nil || !s.Paused {
			t.Errorf("it is not paused: %+v, %v", s, err)
		}
	})
}
