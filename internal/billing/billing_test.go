package billing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/onbeattest"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func TestSendInvoice(t *testing.T) {
	h := handlers.Typed(sendInvoice)
	run := task.New("invoice.send", Invoice{Number: "inv-42"})
	if out := onbeattest.Run(t, h, run); out.State != onbeattest.Retried || out.After != time.Minute {
		t.Errorf("a busy mail server: %+v", out)
	}
	run.Attempt = 2 // a test may also set Slot, Schedule, Timeout, Fence
	if out := onbeattest.Run(t, h, run); out.State != onbeattest.Done {
		t.Errorf("the second attempt: %+v", out)
	}
	if out := onbeattest.Run(t, h, task.New("invoice.send", Invoice{})); out.State != onbeattest.Dead {
		t.Errorf("an invoice without a number would be retried: %+v", out)
	}
}

// An hour of the schedule passes at once.
func TestWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, runs := onbeattest.New(t, onbeat.Config{}), 0
		d.Handle("warm", handlers.Func(func(context.Context, *task.Task) error { runs++; return nil }))
		d.Schedule("warm-up", schedule.Every(time.Minute), "warm", nil)
		onbeattest.Start(t, d)
		time.Sleep(time.Hour)
		synctest.Wait()
		if runs != 61 { // the first run is at once
			t.Errorf("%d runs in an hour", runs)
		}
	})
}
