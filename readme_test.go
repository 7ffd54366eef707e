package onbeat_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// sendInvoice is a handler as users write one.
func sendInvoice(ctx context.Context, inv Invoice) error {
	switch run := handlers.FromContext(ctx); {
	case inv.Number == "":
		return handlers.Dead(errors.New("an invoice without a number"))
	case run.Attempt == 1:
		return handlers.RetryAfter(errors.New("the mail server is busy"), time.Minute)
	}
	return nil
}

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

// The test that README.md shows is the one that runs here.
func TestReadme_showsATestThatRuns(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "func TestSendInvoice("
	shown := 0
	for _, block := range strings.Split(string(readme), "```go\n")[1:] {
		code, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(code, begin) {
			continue
		}
		shown++
		if !strings.Contains(string(source), "\n"+code) {
			t.Errorf("README.md shows a test that is not in readme_test.go:\n%s", code)
		}
	}
	if shown != 1 {
		t.Errorf("README.md shows %d blocks that begin with %s, want 1", shown, begin)
	}
}
