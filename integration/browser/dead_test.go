package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/testredis"
)

// shop is a receiver that is broken until it is mended.
type shop struct {
	*httptest.Server
	mended atomic.Bool
	served atomic.Int64
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !s.mended.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		s.served.Add(1)
	}))
	t.Cleanup(s.Close)
	return s
}

// Tasks die of two causes. One cause is mended: its tasks are found together, counted, and retried together; the others stay as they are.
func TestDead_isFoundByWhatItDiedOfAndRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newShop(t)
	w.serve("v1", head)
	var lines []string
	for i := range 3 {
		lines = append(lines, fmt.Sprintf(`{"type":"http","id":"mail-%d","max_attempts":1,"payload":{"url":%q}}`, i, s.URL+"/mail"))
	}
	w.adds(append(lines, `{"type":"sleep","id":"nap-0","max_attempts":1,"payload":{"for":"1ms","fail":1}}`, `{"type":"sleep","id":"nap-1","max_attempts":1,"payload":{"for":"1ms","fail":1}}`)...)
	dead := func(want ...string) {
		t.Helper()
		testredis.Eventually(w, patience, func() bool { return slices.Equal(w.list("--state", "dead"), want) }, "the dead are never %s", want)
	}
	dead("mail-0", "mail-1", "mail-2", "nap-0", "nap-1")

	b := w.sits()
	b.open("/dead")
	b.says("#scope", "5 dead tasks", "2 groups")
	const mails, naps = "#groups tr:has([aria-label*='500'])", "#groups tr:has([aria-label*='slept badly'])"
	b.says(mails+" [data-field=tasks]", "3")
	b.says(naps+" [data-field=tasks]", "2")

	// The tasks of a group, and back.
	b.click(mails + " a[data-field=type]")
	b.waits(`location.pathname === '/tasks' && location.search.includes('error=')`)
	b.settled()
	b.waits(`document.querySelectorAll('#list tbody tr').length === 3`)
	b.says("#list tbody", "mail-0", "mail-1", "mail-2")
	b.back()
	b.comes("/dead")

	// It says how many there are, and does nothing until one agrees.
	b.click(mails + " [data-act=retry]")
	b.shows("dialog[open]", "3 tasks")
	b.leaves()
	b.focused(mails + " [data-act=retry]")
	dead("mail-0", "mail-1", "mail-2", "nap-0", "nap-1")
	s.mended.Store(true)
	b.click(mails + " [data-act=retry]")
	b.shows("dialog[open]", "3 tasks")
	b.agrees()
	dead("nap-0", "nap-1")
	testredis.Eventually(w, patience, func() bool { return s.served.Load() == 3 }, "they never run again")
	b.shows("#errands", "Done, ")
	b.shows("#errands", ": 3 tasks due again.")
	b.says("#scope", "2 dead tasks", "1 group")
	b.waits(`!document.querySelector(` + quote(mails) + `)`)

	// To delete all of a group.
	b.click(naps + " [data-act=delete]")
	b.shows("dialog[open]", "2 tasks")
	b.agrees()
	dead()
	b.shows("#groups", "No task is dead")
	if served := s.served.Load(); served != 3 {
		t.Errorf("%d served", served)
	}
}

// Without a mouse: from the overview to a dead task, and retry it. The focus can be seen on the whole way, and comes back from a dialog.
func TestDead_isRetriedByTheKeyboardAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := newShop(t)
	w.serve("v1", head)
	w.adds(fmt.Sprintf(`{"type":"http","id":"mail-9","max_attempts":1,"payload":{"url":%q}}`, s.URL))
	w.comesTo("mail-9", "dead")
	s.mended.Store(true)

	b := w.sits()
	b.open("/")
	b.shows("#attention", "dead")
	b.tabs("a.skip")
	b.keys(kb.Enter) // over the menu
	b.tabs("#attention a[href^='/dead'], #figures a[href='/dead']")
	b.keys(kb.Enter)
	b.waits(`location.pathname === '/dead'`)
	b.settled()
	b.tabs("#groups a[href='/tasks/mail-9']")
	b.keys(kb.Enter)
	b.comes("/tasks/mail-9")

	b.tabs("#act [data-act=delete]")
	b.keys(kb.Enter)
	b.waits(`document.querySelector('dialog[open]')?.contains(document.activeElement)`)
	b.keys(kb.Escape)
	b.waits(`!document.querySelector('dialog')`)
	b.focused("#act [data-act=delete]")
	if task := w.known("mail-9"); task.State != "dead" {
		t.Errorf("the dialog was left, and the task is %s", task.State)
	}

	b.eval(`document.activeElement.blur()`)
	b.tabs("#act [data-act=retry]")
	b.keys(kb.Enter)
	b.shows("#toasts", "mail-9 is due again")
	testredis.Eventually(w, patience, func() bool { return s.served.Load() == 1 }, "it never runs again")
	b.shows("#task [data-field=state]", "done")
	b.waits(`document.querySelector('#task').contains(document.activeElement)`) // the button has gone, and the focus is not lost with it
	if n := len(w.incidents("task retried by hand")); n != 1 {
		t.Errorf("%d events say that it was retried", n)
	}
}
