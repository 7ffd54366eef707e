package browser

import (
	"fmt"
	"testing"

	"github.com/onbeat/onbeat/internal/testredis"
)

// A bulk action goes on without the tab that began it, on another instance too; everybody sees how far it is.
func TestBulks_goOnWithoutTheirTab(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.serve("v1", head)
	var lines []string
	for i := range 20_000 {
		lines = append(lines, fmt.Sprintf(`{"type":"mail","id":"mail-%05d","in":"1h"}`, i))
	}
	w.adds(lines...)

	b := w.browse()
	b.allow(gone)
	b.open("/tasks?state=planned&type=mail")
	b.click("#bulk [data-act=cancel]")
	b.shows("dialog[open]", "20,000 tasks match now")
	b.agrees()
	b.shows("#bulks", "Cancelling all planned tasks of type mail")
	b.shows("#bulks", "of about 20,000 tasks")
	b.waits(`document.querySelector('#bulks progress').value > 0`)
	b.open("/audit") // the tab has left

	w.serve("v2", head)
	w.Must("instances", "pause", "--for", "5m") // so that it waits for the other instance, however fast that is
	first.Stop()
	other := b.another()
	other.allow(gone)
	other.open("/dead")
	other.waits(`document.querySelector('#bulks progress')?.value > 0`)
	other.shows("#bulks", "an instance is to go on with it")
	other.shows("body", "instances are paused by") // the line that says so moves what is to be clicked
	other.click("#bulks [data-act=stop]")
	other.shows("#bulks", "stopped it")
	left := len(w.list("--state", "planned"))
	if left == 0 {
		t.Error("it was done before it was stopped")
	}
	w.Must("instances", "resume")
	other.click("#bulks [data-act=resume]")
	testredis.Eventually(w, 3*patience, func() bool { return len(w.list("--state", "planned")) == 0 }, "some are still planned")
	other.shows("#bulks", "20,000 tasks cancelled, or asked to stop")
	b.open("/tasks")
	b.shows("#bulks", "20,000 tasks cancelled, or asked to stop")
	b.waits(`!document.querySelector('#bulks button')`)
}
