package main

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/onbeattest"
	"github.com/onbeat/onbeat/task"
)

func TestSendInvoice(t *testing.T) {
	h := handlers.Typed(sendInvoice)
	run := task.New("invoice.send", Invoice{Number: "inv-42"})
	if out := onbeattest.Run(t, h, run); out.State != onbeattest.Retried || out.After != time.Second {
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
