package browser

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/onbeat/onbeat/testredis"
)

// looking is what anybody may do on a page: nothing of it changes more than what the page shows.
var looking = []string{
	"#zone", "#signout", "#menu", "#find", "#find button", "#filters", "#filters button", "#ask", "#ask button", "[data-act=again]", "[data-act=more]",
	"#follow", "#as-table", "[data-zoom]",
}

// operating is what an operator may do beside it, and directing what is left for an admin. Each is seen somewhere by those who may.
var (
	operating = []string{
		"a[href^='/enqueue']", "#enqueue", "#enqueue [type=submit]",
		"#act [data-act=cancel]", "#act [data-act=retry]", "[data-page=task] #act [data-act=delete]", "#act [data-act=trigger]", "#act [data-act=pause]", "#act [data-act=resume]", "#act [data-act=backfill]",
		"#list [data-act=cancel]", "#list [data-act=retry]", "[data-page=tasks] #list [data-act=delete]", "#list [data-act=trigger]", "#list [data-act=pause]", "#list [data-act=resume]",
		"#groups [data-act=retry]", "#bulk [data-act=cancel]", "#bulk [data-act=retry]", "#groups a.button", "#all button",
	}
	directing = []string{
		"a[href='/new-schedule']", "#definition", "#definition [type=submit]", "#definition [data-act=leave]",
		"#act [data-act=edit]", "#act [data-act=copy]", "[data-page=schedule] #act [data-act=delete]", "#act [data-act=restore]", "#list [data-act=restore]", "[data-act=revert]",
		"#bulk [data-act=delete]", "#groups [data-act=delete]", "#releases [aria-label^=Resign]", "#releases [aria-label^=Drain]", "#releases [aria-label^=Promote]",
	}
)

// controls is all that can be pressed or sent on a page now, and is none of some selectors.
func (b *tab) controls(but ...string) []string {
	b.Helper()
	return value[[]string](b, fmt.Sprintf(`[...document.querySelectorAll('button, form, [data-act], [role=button], a.button, [onclick], a[href^="/enqueue"], a[href^="/new-schedule"], dialog')]
		.filter((e) => e.checkVisibility() && !e.matches(%s)).map((e) => e.outerHTML.slice(0, 120))`, quote(strings.Join(but, ", "))))
}

// A page shows a control to whom the server obeys, and to nobody else. What is asked for by hand is refused.
func TestRoles_seeWhatTheyMayDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secrets := "secret: {echo: [pin]}\n"
	w.serve("v1", w.guarded()+secrets, w.Beat("a", time.Second), w.Beat("off", time.Second), w.Beat("gone", time.Second))
	w.serve("v2", w.guarded()+secrets, w.Beat("a", time.Second), w.Beat("off", time.Second))
	w.Must("schedules", "apply", w.File("hand.yaml", "[{name: by-hand, every: 1h, task: echo, payload: {pin: 4711}}, {name: dropped, every: 1h, task: echo}]"))
	w.Must("schedules", "apply", w.File("hand.yaml", "[{name: by-hand, every: 2h, task: echo, payload: {pin: 4712}}]"))
	w.Must("schedules", "delete", "dropped")
	w.Must("schedules", "pause", "off")
	w.adds(
		`{"type":"sleep","id":"nap","max_attempts":1,"payload":{"for":"1ms","fail":1}}`, `{"type":"echo","id":"later","in":"1h","payload":{"pin":4711}}`,
		`{"type":"sleep","id":"long","payload":{"for":"10m"}}`, `{"type":"echo","id":"well"}`,
	)
	w.comesTo("nap", "dead")
	w.comesTo("long", "running")
	w.comesTo("well", "done")
	testredis.Eventually(w, patience, func() bool { return len(w.Of("a")) > 0 }, "nothing runs")

	b := w.sits()
	b.allow(turnedAway)
	b.allow(`status of 404 .*/dropped`) // it is among those that were deleted
	pages := []string{
		"/", "/beat", "/beat?view=table", "/schedules", "/schedules?state=paused", "/schedules?state=deleted", "/schedules/a", "/schedules/off", "/schedules/by-hand", "/schedules/by-hand?edit=true", "/schedules/dropped",
		"/new-schedule", "/tasks", "/tasks?state=dead", "/tasks?state=due", "/tasks?state=done", "/tasks/nap", "/tasks/later", "/tasks/long", "/tasks/well", "/dead", "/enqueue", "/instances", "/events", "/audit",
	}
	for _, who := range []struct {
		role string
		may  []string
	}{
		{"viewer", nil},
		{"operator", operating},
		{"admin", slices.Concat(operating, directing)},
	} {
		b.open("/login")
		b.signsIn(who.role, "/")
		seen := map[string]bool{}
		for _, path := range pages {
			b.do(chromedp.Navigate(b.base + path))
			b.waits(`document.readyState === 'complete' && ![...document.querySelectorAll('[data-state=loading]')].some((e) => e.checkVisibility())`)
			if got := b.controls(append(slices.Clone(looking), who.may...)...); len(got) > 0 {
				t.Errorf("the %s sees on %s:\n%s", who.role, path, strings.Join(got, "\n"))
			}
			for _, selector := range value[[]string](b, `[`+list(slices.Concat(operating, directing))+`].filter((s) => [...document.querySelectorAll(s)].some((e) => e.checkVisibility()))`) {
				seen[selector] = true
			}
		}
		for _, selector := range who.may {
			if !seen[selector] {
				t.Errorf("the %s may do %s, and sees it nowhere", who.role, selector)
			}
		}
		b.wantRefused(who.role)
		secret := b.secretOf("/v1/tasks/later")
		if hidden := strings.Contains(secret, "***") && !strings.Contains(secret, "4711"); hidden != (who.role == "viewer") {
			t.Errorf("the %s reads %s", who.role, secret)
		}
		b.click("#signout")
		b.comes("/login")
	}
	for id, state := range map[string]string{"nap": "dead", "later": "due", "long": "running", "well": "done"} {
		if task := w.known(id); task.State != state {
			t.Errorf("all was refused, and %s is %s", id, task.State)
		}
	}
}

// list writes literals with commas between.
func list(texts []string) string {
	var quoted []string
	for _, text := range texts {
		quoted = append(quoted, quote(text))
	}
	return strings.Join(quoted, ", ")
}

// wantRefused makes each call of the API for which a role is too low, by hand, from the page, and wants 403.
func (b *tab) wantRefused(role string) {
	b.Helper()
	type answer struct {
		Call   string
		Status int
	}
	got := value[[]answer](b, `(async () => {
		const rank = { viewer: 1, operator: 2, admin: 3 }, answers = [];
		const { paths } = await (await fetch('/openapi.json')).json();
		for (const [path, methods] of Object.entries(paths)) for (const [method, op] of Object.entries(methods)) {
			if (!op['x-onbeat-role'] || rank[op['x-onbeat-role']] <= rank[`+quote(role)+`]) continue;
			const url = path.replace('{name}', 'a').replace('{id}', 'later');
			const body = method === 'post' || method === 'put' ? '{}' : undefined;
			const r = await fetch(url, { method: method.toUpperCase(), headers: { 'Content-Type': 'application/json' }, body });
			answers.push({ call: method + ' ' + url, status: r.status });
		}
		return answers;
	})()`)
	if least := map[string]int{"viewer": 19, "operator": 8, "admin": 0}[role]; len(got) < least {
		b.Errorf("only %d calls are above the %s", len(got), role)
	}
	for _, a := range got {
		if a.Status != http.StatusForbidden {
			b.Errorf("%s of the %s: status %d", a.Call, role, a.Status)
		}
	}
}

// secretOf is what the API says of a task to the one who looks.
func (b *tab) secretOf(path string) string {
	b.Helper()
	return value[string](b, `fetch(`+quote(path)+`).then((r) => r.text())`)
}
