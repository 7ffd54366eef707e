package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// The form says beside a field why it refuses a task, and adds nothing. A task that it takes runs, and another is made like it.
func TestEnqueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	b := w.browse()
	b.allow(`status of (400|409|502) .*/v1/tasks`) // Chromium logs each refusal
	b.open("/tasks")
	b.click("a[href='/enqueue']:not([data-nav])")
	b.comes("/enqueue")
	b.focused("#type") // so that a user can type at once
	b.keys("http")
	b.fills("#payload", `{"url": `)
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

	b.click("[name=when][value=now]")
	b.click("#more summary")
	b.fills("#id", "order-1")
	b.fills("#max_attempts", "3")
	b.keys(kb.Enter)
	b.shows("[data-field=done] a", "order-1")
	if a := w.Arrived("order-1"); a.Attempt != 1 || a.Release != "v1" {
		t.Errorf("%+v", a)
	}
	w.comesTo("done", "order-1")
	if task := w.known("order-1"); task.Type != "http" || !strings.Contains(string(task.Payload), w.Rec.URL("order")) {
		t.Errorf("%+v", task)
	}

	// An ID that is taken: the refusal leads to the task that has it, after the browser has asked whether to leave the form.
	b.fills("#id", "order-1")
	b.click("#enqueue [type=submit]")
	b.click("#enqueue > .error a")
	b.comes("/tasks/order-1")
	if b.questions() != 1 {
		t.Errorf("the browser asked %d times whether to leave the form", b.questions())
	}
	b.says("#task .life", "Enqueued", "Done", "Will be forgotten")
	b.shows("#task [data-field=payload]", w.Rec.URL("order"))
	b.click("#act a[href^='/enqueue']")
	b.comes("/enqueue?like=order-1")
	b.waits(`document.querySelector('#type').value === 'http' && document.querySelector('#payload').value.includes(` + quote(w.Rec.URL("order")) + `)`)
	b.click("#enqueue [type=submit]")
	b.waits(`document.querySelectorAll('[data-field=done] a').length === 1 && !document.querySelector('[data-field=done]').textContent.includes('Like')`)
	w.Arrived(b.text("[data-field=done] a"))

	// A try has added its task, and its answer is lost: the next try does not add another.
	b.click("[name=when][value=in]")
	b.fills("#in", "1h")
	w.front.loses("/v1/tasks")
	b.click("#enqueue [type=submit]")
	b.shows("#enqueue > .error", "502")
	b.click("#enqueue [type=submit]")
	b.waits(`document.querySelectorAll('[data-field=done] a').length === 1`)
	if planned := w.list("--state", "planned"); !slices.Equal(planned, []string{b.text("[data-field=done] a")}) {
		t.Errorf("planned are %q", planned)
	}
}
