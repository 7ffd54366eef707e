package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The pages with all that they can show, and without anything: can everybody use them, and does each role see what it may do?
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", w.guarded())
	b := w.comes("admin")
	for _, path := range []string{"/", "/beat", "/schedules", "/tasks", "/dead", "/instances", "/events", "/audit", "/trends"} {
		b.open(path)
		b.wantAccessible(path+" of an empty namespace", level...)
	}
	w.filled()
	for _, part := range []struct {
		name string
		test func(*world)
	}{{"roles", roles}, {"axe", accessible}} {
		t.Run(part.name, func(t *testing.T) { // one after the other: the last one changes what the others look at
			r := *w.World
			r.T = t
			part.test(&world{&r, w.front})
		})
	}
}

// comes signs somebody in, in a browser of their own.
func (w *world) comes(role string) *tab {
	w.Helper()
	b := w.browse()
	b.allow(turnedAway)
	b.open("/login")
	b.signsIn(tokens[role], "/")
	return b
}

// looking has the controls that anybody may use on a page: they change only the view.
var looking = []string{
	"#zone", "#search", "#signout", "#menu", "#find", "#find button", "#filters", "#filters button", "#ask", "#ask button", "[data-act=again]", "[data-act=more]",
	"#follow", "#as-table", "[data-zoom]", ".copy", "#compact",
}

// operating has the further controls of an operator, and directing those of an admin. Each role sees its controls somewhere.
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

// A page shows a control to those whom the server obeys, and to nobody else.
func roles(w *world) {
	for _, who := range []struct {
		role string
		may  []string
	}{{"viewer", nil}, {"operator", operating}, {"admin", slices.Concat(operating, directing)}} {
		b := w.comes(who.role)
		b.allow(`status of 404 .*/gone`) // it is among those that were deleted
		seen := map[string]bool{}
		for _, path := range []string{
			"/", "/beat", "/schedules", "/schedules?state=deleted", "/schedules/well", "/schedules/halted", "/schedules/by-hand", "/schedules/by-hand?edit=true", "/schedules/gone",
			"/new-schedule", "/tasks", "/tasks?state=dead", "/tasks?state=planned", "/tasks?state=done", "/tasks/runs", "/tasks/due", "/tasks/dead", "/trends", "/dead", "/enqueue", "/instances", "/events", "/audit",
		} {
			b.open(path)
			if strings.HasPrefix(path, "/tasks?") {
				b.waits(`document.querySelector('#list tbody tr')`)
			}
			allowed := strings.Join(slices.Concat(looking, who.may), ", ")
			for _, e := range value[[]string](b, fmt.Sprintf(`[...document.querySelectorAll('button, form, [data-act], [role=button], a.button, [onclick], a[href^="/enqueue"], a[href^="/new-schedule"], dialog')]
				.filter((e) => e.checkVisibility() && !e.matches(%s)).map((e) => e.outerHTML.slice(0, 120))`, quote(allowed))) {
				w.Errorf("the %s sees on %s: %s", who.role, path, e)
			}
			for _, selector := range value[[]string](b, quote(who.may)+`?.filter((s) => [...document.querySelectorAll(s)].some((e) => e.checkVisibility())) ?? []`) {
				seen[selector] = true
			}
		}
		for _, selector := range who.may {
			if !seen[selector] {
				w.Errorf("the %s may do %s, and sees it nowhere", who.role, selector)
			}
		}
	}
}
