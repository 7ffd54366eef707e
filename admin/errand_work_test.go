package admin

import (
	"context"
	"testing"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
)

// halting are tasks of which a page fails in the middle, once.
type halting struct {
	Tasks
	pages []BulkResult
	after []string
}

func (h *halting) Bulk(_ context.Context, b Bulk) (BulkResult, error) {
	page := h.pages[0]
	h.pages, h.after = h.pages[1:], append(h.after, b.After)
	if page.Next == "fails" {
		return BulkResult{Matched: page.Matched, Changed: page.Changed}, store.ErrBusy
	}
	return page, nil
}

// What was changed of a page that failed no longer matches when it is done again, so each task is counted once.
func TestWorkErrand_countsThePageThatFailedOnce(t *testing.T) {
	t.Parallel()
	q, err := queue.New(testredis.Client(t), queue.Partition{Namespace: testredis.Namespace(t)}, queue.Caps{})
	if err != nil {
		t.Fatal(err)
	}
	h := &halting{pages: []BulkResult{{Matched: 5, Changed: 5, Next: "dead.a"}, {Matched: 5, Changed: 2, Next: "fails"}, {Matched: 3, Changed: 3}}}
	e := &errands{q: q, tasks: h}
	begun, err := e.Begin(t.Context(), ErrandSpec{Action: RetryTasks})
	if err != nil {
		t.Fatal(err)
	}
	if some, err := e.WorkErrand(t.Context()); !some || err != nil {
		t.Fatal(some, err)
	}
	got, err := e.Get(t.Context(), begun.ID)
	if err != nil || got.State != queue.ErrandDone || got.Matched != 10 || got.Changed != 10 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(h.after) != 3 || h.after[1] != "dead.a" || h.after[2] != "dead.a" {
		t.Errorf("it went on at %q", h.after)
	}
}
