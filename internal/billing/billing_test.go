package billing

import (
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func TestSendInvoice(t *testing.T) {
	h := handlers.Typed(sendInvoice)
	run := task.New("invoice.send", Invoice{Number: "inv-42"})
	run.Attempt = 1 // what the dispatcher would set: also Fence, Slot, Schedule
	if d, ok := handlers.RetryDelay(h.Handle(t.Context(), run)); !ok || d != time.Minute {
		t.Errorf("a busy mail server: retried after %v, %v", d, ok)
	}
	run.Attempt = 2
	if err := h.Handle(t.Context(), run); err != nil {
		t.Errorf("the second attempt: %v", err)
	}
	if err := h.Handle(t.Context(), task.New("invoice.send", Invoice{})); !handlers.IsDead(err) {
		t.Errorf("an invoice without a number would be retried: %v", err)
	}
}
