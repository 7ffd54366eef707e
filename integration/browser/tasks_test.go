package browser

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/testredis"
)

// tasks are found by state, by filter and by ID. The address holds what one sees: it survives a reload, and the way back. One that runs is
// cancelled, and its handler is told.
func TestTasks_areFoundAndCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	lines := []string{
		fmt.Sprintf(`{"type":"http","id":"long","payload":{"url":%q}}`, w.Rec.URL("long?for=2m")),
		`{"type":"sleep","id":"nap","max_attempts":1,"payload":{"for":"1ms","fail":1}}`, `{"type":"echo","id":"well"}`, `{"type":"echo","id":"other","in":"1h","queue":"slow"}`,
	}
	for i := range 120 {
		lines = append(lines, fmt.Sprintf(`{"type":"mail","id":"mail-%03d","in":"1h"}`, i))
	}
	w.adds(lines...)
	w.Arrived("long")
	w.comesTo("nap", "dead")
	w.comesTo("well", "done")

	b := w.sits()
	b.open("/tasks")
	for state, count := range map[string]string{"running": "1", "due": "121", "dead": "1", "done": "1"} {
		b.shows("#states [data-field="+state+"]", count)
	}
	b.click("#states [data-state-of=dead]")
	b.comes("/tasks?state=dead")
	b.shows("#list tbody", "nap")
	b.click("#states [data-state-of=due]")
	b.comes("/tasks?state=due")
	shown := func(n int) {
		t.Helper()
		b.waits(fmt.Sprintf(`document.querySelectorAll('#list tbody tr').length === %d`, n))
	}
	shown(50)
	b.click("#list [data-act=more]")
	shown(121)

	b.fills("[name=type]", "mail")
	b.waits(`location.search === '?state=due&type=mail'`)
	shown(50)
	b.fills("[name=queue]", "slow")
	b.waits(`location.search === '?state=due&type=mail&queue=slow'`)
	b.shows("#list", "There are no due tasks of type mail, in queue slow now.")
	b.fills("[name=type]", "")
	b.waits(`location.search === '?state=due&queue=slow'`)
	b.shows("#list tbody", "other")
	shown(1)
	b.do(chromedp.Reload())
	b.comes("/tasks?state=due&queue=slow")
	shown(1)
	b.waits(`document.querySelector('[name=queue]').value === 'slow' && document.querySelector('#states [aria-current]').dataset.stateOf === 'due'`)
	b.back()
	b.comes("/tasks?state=dead")
	b.shows("#list tbody", "nap")
	b.waits(`document.querySelector('[name=queue]').value === ''`)
	b.back()
	b.comes("/tasks")
	b.shows("#list tbody", "long")

	// By its ID, and back; and one that is not there.
	b.fills("#find [name=id]", "mail-077")
	b.keys(kb.Enter)
	b.comes("/tasks/mail-077")
	b.shows("#task .lead", "It is due")
	b.back()
	b.comes("/tasks")
	b.allow(`status of 404 .*/v1/tasks/nobody`)
	b.fills("#find [name=id]", "nobody")
	b.keys(kb.Enter)
	b.comes("/tasks/nobody")
	b.shows("#task", "There is no task with this ID")

	// One that runs is asked to stop.
	b.open("/tasks?state=running")
	b.click("#list [aria-label='cancel long']")
	b.shows("dialog[open]", "It may have done something already")
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return w.Task("long")[0].GivenUp }, "the handler is never told")
	b.shows("#list", "There are no running tasks now")
	if got := w.incidents("task cancel asked"); len(got) != 1 || got[0].Fields["task"] != "long" || got[0].Fields["by"] == "" {
		t.Errorf("%+v", got)
	}
	if want := []string{"nap"}; !slices.Equal(w.list("--state", "dead"), want) {
		t.Errorf("dead: %s", w.list("--state", "dead"))
	}
}

// Very many tasks are counted first, and then cancelled by the server: those that match, and no others.
func TestTasks_areCancelledInBulk(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	var lines []string
	for i := range 2500 {
		lines = append(lines, fmt.Sprintf(`{"type":"mail","id":"mail-%04d","in":"1h","queue":"slow"}`, i))
	}
	for i := range 10 {
		lines = append(lines, fmt.Sprintf(`{"type":"mail","id":"other-%d","in":"1h"}`, i))
	}
	w.adds(append(lines, `{"type":"sleep","id":"nap","max_attempts":1,"queue":"slow","payload":{"for":"1ms","fail":1}}`)...)
	w.comesTo("nap", "dead")

	b := w.sits()
	b.open("/tasks?state=due&type=mail&queue=slow")
	b.shows("#states [data-field=due]", "2,510")
	b.click("#bulk [data-act=cancel]")
	b.shows("dialog[open]", "2,500")
	b.leaves()
	if due := len(w.list("--state", "due", "--queue", "slow")); due != 1000 { // as many as are listed at once
		t.Errorf("the dialog was left, and %d are due", due)
	}
	b.click("#bulk [data-act=cancel]")
	b.shows("dialog[open]", "2,500")
	b.click("dialog[open] [data-act=ok]")
	testredis.Eventually(w, 2*patience, func() bool { return len(w.list("--state", "due", "--queue", "slow")) == 0 }, "some are still due")
	b.waits(`document.querySelector('#states [data-field=due]').textContent === '10'`)
	b.shows("#list", "There are no due tasks")
	if due := w.list("--state", "due"); len(due) != 10 {
		t.Errorf("due: %s", due)
	}
	if dead := w.list("--state", "dead"); !slices.Equal(dead, []string{"nap"}) {
		t.Errorf("dead: %s", dead)
	}
	var changed, by = 0, ""
	for _, e := range w.incidents("tasks changed") {
		if e.Fields["action"] == "cancel" {
			var n int
			_, _ = fmt.Sscan(e.Fields["tasks"], &n)
			changed, by = changed+n, e.Fields["by"]
		}
	}
	if changed != 2500 || by == "" {
		t.Errorf("events tell of %d cancelled tasks, by %q", changed, by)
	}
}
