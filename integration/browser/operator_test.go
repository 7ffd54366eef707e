package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/testredis"
)

// What an operator does is judged by the program's own commands, which go to Redis, and know nothing of the pages.

// said is what a command prints as JSON.
func said[T any](w *world, args ...string) (v T) {
	w.Helper()
	if err := json.Unmarshal([]byte(w.Must(append(args, "--json")...)), &v); err != nil {
		w.Fatalf("onbeat %v: %v", args, err)
	}
	return v
}

// sits opens a browser for somebody who likes no motion: while one page fades into the next, clicks are lost.
func (w *world) sits() *tab {
	w.Helper()
	b := w.browse()
	b.looks(false, 1280, 800)
	return b
}

// known is a task, as the command shows it.
type known struct {
	ID, Type, State, Schedule string
	Due, Slot                 time.Time
	Attempts                  int
	Payload                   json.RawMessage
	Failures                  []struct{ Error string }
}

// known is a task of the namespace, which has to exist.
func (w *world) known(id string) known {
	w.Helper()
	return said[known](w, "tasks", "show", id)
}

// list is the IDs of the tasks that a filter matches, at most 1000, in order.
func (w *world) list(filter ...string) (ids []string) {
	w.Helper()
	for _, t := range said[struct{ Items []known }](w, append([]string{"tasks", "list", "--limit", "1000"}, filter...)...).Items {
		ids = append(ids, t.ID)
	}
	slices.Sort(ids)
	return ids
}

// comesTo waits until a task is in a state.
func (w *world) comesTo(id, state string) {
	w.Helper()
	testredis.Eventually(w, patience, func() bool {
		_, out, _ := w.Try("tasks", "show", id, "--json")
		return strings.Contains(out, `"state":"`+state+`"`) || strings.Contains(out, `"state": "`+state+`"`)
	}, "%s never comes to be %s", id, state)
}

// incident is an event, as the command prints it.
type incident struct {
	At     time.Time
	Event  string
	Fields map[string]string
}

// incidents are the events of a kind so far, the oldest first.
func (w *world) incidents(kind string) []incident {
	w.Helper()
	list := said[struct{ Items []incident }](w, "events", "--limit", "10000").Items
	return slices.DeleteFunc(list, func(e incident) bool { return e.Event != kind })
}

// adds enqueues tasks, each a line of JSON.
func (w *world) adds(lines ...string) {
	w.Helper()
	w.Must("enqueue", "--file", w.File("tasks.jsonl", strings.Join(lines, "\n")+"\n"))
}

// call sends the browser a command, and returns what it answers.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) R {
	b.Helper()
	ctx, done := context.WithTimeout(b.ctx, patience)
	defer done()
	answer, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.Fatal(err)
	}
	return answer
}

// at is where the page is, on its server.
func (b *tab) at() string {
	b.Helper()
	return value[string](b, `location.pathname + location.search`)
}

// comes waits until the page is somewhere, and its views show something.
func (b *tab) comes(path string) {
	b.Helper()
	b.waits(`location.pathname + location.search === ` + quote(path))
	b.settled()
}

// back goes a step back, as by the button of the browser.
func (b *tab) back() {
	b.Helper()
	b.eval(`void setTimeout(() => history.back())`) // at once, the page might go before the browser has answered
}

// risks does what leaves a form that is not saved, and agrees when the browser asks whether to.
func (b *tab) risks(leave func()) {
	b.Helper()
	ctx, done := context.WithTimeout(b.ctx, patience)
	defer done()
	asked := make(chan error, 1)
	go func() {
		for {
			_, err := chromedp.Call(ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
			if err == nil || ctx.Err() != nil {
				asked <- err
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	leave()
	if err := <-asked; err != nil {
		b.Fatalf("the browser does not ask whether to leave the form: %v", err)
	}
}

// says waits until an element says all of the texts.
func (b *tab) says(selector string, texts ...string) {
	b.Helper()
	for _, text := range texts {
		b.shows(selector, text)
	}
}

// leaves leaves the dialog that is open.
func (b *tab) leaves() {
	b.Helper()
	b.click("dialog[open] [data-act=cancel]")
	b.waits(`!document.querySelector('dialog[open]')`)
}

// tabs presses the tab key until an element has the focus, as somebody without a mouse does. Wherever the focus is meanwhile, it can be seen.
func (b *tab) tabs(selector string) {
	b.Helper()
	b.waits(fmt.Sprintf(`[...document.querySelectorAll(%s)].some((e) => e.checkVisibility())`, quote(selector)))
	var way []string
	for range 80 {
		b.keys(kb.Tab)
		now := value[struct {
			There, Seen bool
			What        string
		}](b, fmt.Sprintf(`(() => {
			const e = document.activeElement, s = getComputedStyle(e), box = e.getBoundingClientRect();
			const ring = s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0;
			return { there: e.matches(%s), seen: e === document.body || (e.matches(':focus-visible') && ring && box.width > 0 && box.height > 0), what: e.outerHTML.slice(0, 100) };
		})()`, quote(selector)))
		if !now.Seen {
			b.Errorf("%s: the focus cannot be seen on %s", b.at(), now.What)
		}
		if now.There {
			return
		}
		way = append(way, now.What)
	}
	b.Fatalf("%s: the tab key never leads to %s, but to:\n%s", b.at(), selector, strings.Join(way, "\n"))
}

// focused waits until an element has the focus.
func (b *tab) focused(selector string) {
	b.Helper()
	b.waits(`document.activeElement?.matches(` + quote(selector) + `)`)
}
