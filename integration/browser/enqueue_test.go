package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// What the form refuses stands beside its field, and adds nothing. What it takes runs, and its page tells its life.
func TestEnqueue_refusesBesideTheFieldAndThenRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	b := w.sits()
	b.allow(`status of (400|404|409) .*/v1/tasks`) // Chromium says so of what is refused

	b.open("/tasks")
	b.click("a[href='/enqueue']:not([data-nav])")
	b.comes("/enqueue")
	b.focused("#type") // so that one can type at once
	b.keys("http")
	b.fills("#payload", `{"url": `)
	b.keys(w.Rec.URL("order")) // without quotation marks: no JSON
	b.click("#enqueue [type=submit]")
	b.shows("#error-payload", "not JSON")
	b.focused("#payload[aria-invalid=true][aria-describedby=error-payload]")

	b.fills("#payload", w.Payload("order"))
	b.click("[name=when][value=in]")
	b.fills("#in", "soon")
	b.click("#enqueue [type=submit]")
	b.shows("#error-in", "not a duration") // in the words of the API
	b.focused("#in[aria-invalid=true]")
	if b.has("#error-payload") {
		t.Error("the payload is refused no more, and the form says that it is")
	}
	if list := w.list(); len(list) > 0 {
		t.Errorf("what was refused is there: %s", list)
	}

	b.click("#more summary")
	b.fills("#id", "order-1")
	b.fills("#secret", "no secret")
	b.fills("#max_attempts", "many")
	b.click("#enqueue [type=submit]")
	b.shows("#error-max_attempts", "not a whole number")
	b.fills("#max_attempts", "3")
	b.fills("#secret", "")
	b.fills("#in", "1h")
	b.keys(kb.Enter)
	b.shows("[data-field=done] a", "order-1")
	if task := w.known("order-1"); task.State != "due" || task.Type != "http" || !strings.Contains(string(task.Payload), w.Rec.URL("order")) {
		t.Errorf("%+v", task)
	}

	// It is due in an hour. On its page it is cancelled.
	b.click("[data-field=done] a")
	b.comes("/tasks/order-1")
	b.says("#task .lead", "It is due")
	b.says("#task .life", "Enqueued", "Will be due")
	b.click("#act [data-act=cancel]")
	b.leaves()
	if task := w.known("order-1"); task.State != "due" {
		t.Errorf("the dialog was left, and the task is %s", task.State)
	}
	b.focused("#act [data-act=cancel]") // where it was before
	b.click("#act [data-act=cancel]")
	b.agrees()
	b.shows("#task", "There is no task with this ID")
	if code, out, _ := w.Try("tasks", "show", "order-1"); code == 0 {
		t.Errorf("it was cancelled: %s", out)
	}

	// The form has kept what it needs for the next one.
	b.back()
	b.comes("/enqueue")
	b.fills("#type", "http")
	b.fills("#payload", w.Payload("order"))
	b.click("[name=when][value=now]")
	b.eval(`document.querySelector('#more').open = true`)
	b.fills("#id", "order-2")
	b.click("#enqueue [type=submit]")
	b.shows("[data-field=done] a", "order-2")
	if a := w.Arrived("order-2"); a.Attempt != 1 || a.Release != "v1" {
		t.Errorf("%+v", a)
	}
	w.comesTo("order-2", "done")

	// An ID that is taken: the refusal leads to the task that has it.
	b.fills("#id", "order-2")
	b.click("#enqueue [type=submit]")
	b.shows("#enqueue > .error", `a task with the ID "order-2" exists`)
	b.risks(func() { b.click("#enqueue > .error a") })
	b.comes("/tasks/order-2")
	b.says("#task .lead", "It has run well")
	b.says("#task .life", "Enqueued", "Done", "Will be forgotten")
	b.says("#task [data-field=payload]", w.Rec.URL("order"))
	if runs := w.Task("order-2"); len(runs) != 1 {
		t.Errorf("it ran %d times", len(runs))
	}

	// One like it.
	b.click("#act a[href^='/enqueue']")
	b.comes("/enqueue?like=order-2")
	b.waits(`document.querySelector('#type').value === 'http' && document.querySelector('#payload').value.includes(` + quote(w.Rec.URL("order")) + `)`)
	b.click("#enqueue [type=submit]")
	b.shows("[data-field=done] a", "")
	b.waits(`document.querySelectorAll('[data-field=done] a').length === 1 && !document.querySelector('[data-field=done]').textContent.includes('Like')`)
	w.Arrived(b.text("[data-field=done] a"))
}
