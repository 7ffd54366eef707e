package browser

import (
	"fmt"
	"testing"

	"github.com/onbeat/onbeat/internal/testredis"
)

// What the server does to many tasks goes on without the tab that began it, on another instance too; everybody sees how far it is.
func TestErrands_goOnWithoutTheirTab(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.serve("v1", head)
	var lines []string
	for i := range 12_000 {
		lines = append(lines, fmt.Sprintf(`{"type":"mail","id":"mail-%05d","in":"1h"}`, i))
	}
	w.adds(lines...)

	b := w.browse()
	b.allow(gone)
	b.open("/tasks?state=due&type=mail")
	b.click("#bulk [data-act=cancel]")
	b.shows("dialog[open]", "12,000 tasks match now")
	b.agrees()
	b.shows("#errands", "Cancelling all due tasks of type mail")
	b.shows("#errands", "of about 12,000 tasks")
	b.waits(`document.querySelector('#errands progress').value > 0`)
	b.open("/audit") // the tab has left

	w.serve("v2", head)
	first.Stop()
	other := b.another()
	other.allow(gone)
	other.open("/dead")
	other.waits(`document.querySelector('#errands progress')?.value > 0`)
	other.click("#errands [data-act=stop]")
	other.shows("#errands", "stopped it")
	left := len(w.list("--state", "due"))
	if left == 0 {
		t.Error("it was done before it was stopped")
	}
	other.click("#errands [data-act=resume]")
	testredis.Eventually(w, 3*patience, func() bool { return len(w.list("--state", "due")) == 0 }, "some are still due")
	other.shows("#errands", "12,000 tasks cancelled, or asked to stop")
	b.open("/tasks")
	b.shows("#errands", "12,000 tasks cancelled, or asked to stop")
	b.waits(`!document.querySelector('#errands button')`)
}
