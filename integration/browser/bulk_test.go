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

// To delete many cannot be undone: the dialog says what they are and how many, saves them first, and wants their number and a reason.
func TestBulks_deleteWithCare(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	const n = 1200
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"type":"sleep","id":"nap-%04d","max_attempts":1,"payload":{"for":"1ms","fail":1}}`, i))
	}
	w.adds(lines...)
	b := w.browse()
	b.open("/dead")
	testredis.Eventually(w, 2*patience, func() bool { return w.deadTasks() == n }, "they do not die")
	b.open("/dead")
	b.shows("#bulk [data-act=delete]", "Delete all 1,200 …")
	b.click("#bulk [data-act=delete]")
	b.shows("dialog[open] [data-act=ok]", "Delete 1,200 tasks")
	b.shows("dialog[open] li", "1,200 sleep: slept badly")
	b.shows("dialog[open] [data-act=cancel]", "Cancel")
	b.eval(`(() => { const make = URL.createObjectURL; URL.createObjectURL = (blob) => ((window.saved = blob), make.call(URL, blob)); })()`)
	b.click("dialog[open] [data-act=download]")
	b.shows("dialog[open] .hint", "1,200 tasks downloaded")
	if ids := value[int](b, `saved.text().then((text) => new Set(text.trim().split('\n').map((line) => JSON.parse(line).id)).size)`); ids != n {
		t.Errorf("%d tasks are saved", ids)
	}
	b.fills("dialog[open] [name=reason]", "the shop has closed")
	b.fills("dialog[open] [name=number]", "120")
	b.click("dialog[open] [data-act=ok]")
	b.shows("dialog[open] [data-field=error]", "type 1200")
	if left := w.deadTasks(); left != n {
		t.Errorf("%d are left", left)
	}
	b.fills("dialog[open] [name=number]", "1200")
	b.agrees()
	b.shows("#groups", "No task is dead")
	for _, kind := range []string{"bulk begun", "tasks changed", "bulk done"} {
		list := w.incidents(kind)
		if len(list) == 0 || list[0].Fields["reason"] != "the shop has closed" {
			t.Errorf("%s: %+v", kind, list)
		}
	}
}
