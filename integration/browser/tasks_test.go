package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/internal/testredis"
)

// Tasks are found by state, by filter and by ID. The address holds the view: it survives a reload, and the way back. Tasks that match are
// counted first, and then cancelled by the server, and no others.
func TestTasks(t *testing.T) {
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
	w.comesTo("dead", "nap")
	w.comesTo("done", "well")

	b := w.browse()
	b.open("/tasks")
	for state, count := range map[string]string{"running": "1", "waiting": "0", "dead": "1", "done": "1"} {
		b.shows("#states [data-field="+state+"]", count)
	}
	b.shows("#counted", "Retrying and planned together: 121")
	shown := func(n int) {
		t.Helper()
		b.waits(fmt.Sprintf(`document.querySelectorAll('#list tbody tr').length === %d`, n))
	}
	b.click("#states [data-state-of=planned]")
	b.comes("/tasks?state=planned")
	shown(50)
	b.click("#list [data-act=more]")
	shown(121)
	b.fills("[name=queue]", "slow")
	b.waits(`location.search === '?state=planned&queue=slow'`)
	shown(1)
	b.do(chromedp.Reload())
	b.comes("/tasks?state=planned&queue=slow")
	shown(1)
	b.waits(`document.querySelector('[name=queue]').value === 'slow' && document.querySelector('#states [aria-current]').dataset.stateOf === 'planned'`)
	b.back()
	b.comes("/tasks")
	b.shows("#list tbody", "long")
	b.fills("#find [name=id]", "mail-077")
	b.keys(kb.Enter)
	b.comes("/tasks/mail-077")
	b.shows("#task .lead", "It is due")

	// All of a type are cancelled.
	b.open("/tasks?state=planned&type=mail")
	b.click("#bulk [data-act=cancel]")
	b.shows("dialog[open]", "120")
	b.leaves()
	if due := len(w.list("--state", "planned")); due != 121 {
		t.Errorf("the dialog was left, and %d are due", due)
	}
	b.click("#bulk [data-act=cancel]")
	b.shows("dialog[open]", "120")
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return slices.Equal(w.list("--state", "planned"), []string{"other"}) }, "not all are cancelled, or too many")
	b.shows("#counted", "Retrying and planned together: 1;")

	// A task that no instance handles waits, and is red when it has waited for too long. A task that failed is retried, and not planned.
	w.adds(`{"type":"mail","id":"late","at":"2026-01-01T00:00:00Z"}`, `{"type":"http","id":"fails","backoff":"1h","backoff_cap":"1h","payload":{"url":"http://127.0.0.1:9/"}}`)
	w.comesTo("waiting", "late")
	b.open("/tasks?state=waiting")
	b.shows("#list tbody tr [data-field=id]", "late")
	b.waits(`document.querySelector('#list tbody [data-field=state][data-kind=bad]')?.textContent === 'waiting' && document.querySelector('#states [data-field=waiting]').dataset.kind === 'bad'`)
	b.shows("#counted", "1 for a worker, for longer than a minute")
	testredis.Eventually(w, patience, func() bool { return slices.Equal(w.list("--state", "retrying"), []string{"fails"}) }, "it is not retried")
	b.click("#states [data-state-of=retrying]")
	b.shows("#list tbody", "fails")
	shown(1)
	b.click("#states [data-state-of=planned]")
	b.shows("#list tbody", "other")
	shown(1)

	// Two are chosen, and cancelled together.
	w.adds(`{"type":"echo","id":"one","in":"2h"}`, `{"type":"echo","id":"two","in":"2h"}`)
	b.shows("#list tbody", "two")
	for _, id := range []string{"one", "two"} {
		b.click(fmt.Sprintf("#list .pick[aria-label='Choose %s']", id))
	}
	b.shows("#chosen", "2 chosen")
	b.click("#chosen [data-act=cancel]")
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return slices.Equal(w.list("--state", "planned"), []string{"other"}) }, "the chosen are not cancelled, or others are")

	// By the keyboard alone anything is found by a part of its name, and a task by its ID.
	for text, to := range map[string]string{"instanc": "/instances", "other": "/tasks/other"} {
		b.eval(`document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }))`)
		b.waits(`document.activeElement?.closest('dialog.search')`)
		b.keys(text)
		b.waits(`document.querySelector('dialog.search [aria-selected=true]')`)
		b.waits(`document.querySelector('dialog.search [data-field=said]').textContent === ''`)
		b.keys(kb.Enter)
		b.comes(to)
		b.settled()
	}
}

// A task that runs is asked to stop, and its handler is told. One that is due is cancelled. One that is not there is not found.
func TestTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	w.adds(fmt.Sprintf(`{"type":"http","id":"long","payload":{"url":%q}}`, w.Rec.URL("long?for=2m")), `{"type":"echo","id":"later","in":"1h"}`)
	w.Arrived("long")
	b := w.browse()
	b.allow(`status of 404 `)
	b.open("/tasks/long")
	b.click("#act [data-act=cancel]")
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return w.Task("long")[0].GivenUp }, "the handler is never told")
	if got := w.incidents("task cancel asked"); len(got) != 1 || got[0].Fields["task"] != "long" || got[0].Fields["by"] == "" {
		t.Errorf("%+v", got)
	}

	b.open("/tasks/later")
	b.says("#task .life", "Enqueued", "Will be due")
	b.click("#act [data-act=cancel]")
	b.leaves()
	b.focused("#act [data-act=cancel]") // where it was before
	if task := w.known("later"); task.State != "planned" {
		t.Errorf("the dialog was left, and the task is %s", task.State)
	}
	b.click("#act [data-act=cancel]")
	b.agrees()
	b.shows("#task", "There is no task")
	if code, out, _ := w.Try("tasks", "show", "later"); code == 0 {
		t.Errorf("it was cancelled: %s", out)
	}
	b.open("/tasks/%FF")
	b.shows("#task", "There is no task")
}

// Tasks die of two causes. One is mended: its tasks are found together, counted, and retried together. The last of them is retried without a mouse:
// the focus can be seen on the whole way, and comes back from a dialog.
func TestDead(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	var served atomic.Int64
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !mended.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		served.Add(1)
	}))
	t.Cleanup(shop.Close)
	w := newWorld(t)
	w.serve("v1", head)
	lines := []string{`{"type":"sleep","id":"nap","max_attempts":1,"payload":{"for":"1ms","fail":1}}`}
	for i := range 3 {
		lines = append(lines, fmt.Sprintf(`{"type":"http","id":"mail-%d","max_attempts":1,"payload":{"url":%q}}`, i, shop.URL+"/mail"))
	}
	w.adds(lines...)
	dead := func(want ...string) {
		t.Helper()
		testredis.Eventually(w, patience, func() bool { return slices.Equal(w.list("--state", "dead"), want) }, "the dead are never %s", want)
	}
	dead("mail-0", "mail-1", "mail-2", "nap")

	b := w.browse()
	b.open("/dead")
	b.says("#scope", "4 dead tasks", "2 groups")
	const mails, naps = "#groups tr:has([aria-label*='500'])", "#groups tr:has([aria-label*='slept badly'])"
	b.shows(mails+" [data-field=tasks]", "3")
	b.click(mails + " summary")
	for i := range 3 {
		b.shows(mails+" details li", fmt.Sprintf("mail-%d", i))
	}
	b.click(mails + " [data-act=retry]")
	b.shows("dialog[open]", "3 tasks")
	b.leaves()
	b.focused(mails + " [data-act=retry]")
	dead("mail-0", "mail-1", "mail-2", "nap")
	mended.Store(true)
	b.click(mails + " [data-act=retry]")
	b.shows("dialog[open]", "3 tasks")
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return served.Load() == 3 }, "they never run again")
	dead("nap")
	b.says("#scope", "1 dead task", "1 group")
	b.click(naps + " [data-act=delete]")
	b.shows("dialog[open] [data-act=ok]", "Delete 1 task")
	b.fills("dialog[open] [name=reason]", "it cannot be mended")
	b.agrees()
	dead()
	b.shows("#groups", "No task is dead")

	mended.Store(false)
	w.adds(strings.Replace(lines[1], "mail-0", "mail-9", 1))
	dead("mail-9")
	mended.Store(true)
	b.open("/")
	b.shows("#attention", "dead")
	b.tabs("a.skip")
	b.keys(kb.Enter) // over the menu
	b.tabs("#attention a[href='/dead'], #figures a[href='/dead']")
	b.keys(kb.Enter)
	b.comes("/dead")
	b.tabs("#groups a[href='/tasks/mail-9']")
	b.keys(kb.Enter)
	b.comes("/tasks/mail-9")
	b.tabs("#act [data-act=delete]")
	b.keys(kb.Enter)
	b.waits(`document.querySelector('dialog[open]')?.contains(document.activeElement)`)
	b.keys(kb.Escape)
	b.waits(`!document.querySelector('dialog')`)
	b.focused("#act [data-act=delete]")
	dead("mail-9")
	b.eval(`document.activeElement.blur()`)
	b.tabs("#act [data-act=retry]")
	b.keys(kb.Enter)
	testredis.Eventually(w, patience, func() bool { return served.Load() == 4 }, "it never runs again")
	b.shows("#task [data-field=state]", "done")
	b.waits(`document.querySelector('#task').contains(document.activeElement)`) // the button has gone, and the focus is not lost with it
}
