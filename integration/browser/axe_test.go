package browser

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/testredis"
)

// axe is axe-core 4.14.1, which finds what people with disabilities stumble over. It comes to the page by the DevTools protocol, so
// the policy of the page stays as it is.
//
//go:embed testdata/axe/axe.min.js
var axe string

// level is what pages must fulfil: WCAG 2.2, levels A and AA. What axe calls best practice is shown in the log.
var level = []string{"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"}

// violation is a rule that a page breaks.
type violation struct {
	ID, Help string
	Tags     []string
	Nodes    []struct {
		Target  []any
		HTML    string
		Summary string
	}
}

func (v violation) String() string {
	s := v.ID + ": " + v.Help
	for _, n := range v.Nodes {
		s += fmt.Sprintf("\n\t%v\n\t\t%s\n\t\t%s", n.Target, n.HTML, strings.ReplaceAll(n.Summary, "\n", "\n\t\t"))
	}
	return s
}

// wantAccessible fails if axe finds a fault in what the page shows now.
func (b *tab) wantAccessible(what string) {
	b.Helper()
	if !value[bool](b, `typeof axe === 'object'`) {
		b.eval(axe + "\n;undefined")
	}
	found := value[[]violation](b, `axe.run(document, {
		runOnly: { type: 'tag', values: `+quote2(append(slices.Clone(level), "best-practice"))+` },
		rules: { 'target-size': { enabled: true } }, resultTypes: ['violations'],
	}).then((r) => r.violations.map((v) => ({ id: v.id, help: v.help, tags: v.tags,
		nodes: v.nodes.slice(0, 5).map((n) => ({ target: n.target, html: n.html.slice(0, 300), summary: n.failureSummary })) })))`)
	for _, v := range found {
		if slices.ContainsFunc(v.Tags, func(tag string) bool { return slices.Contains(level, tag) }) {
			b.Errorf("%s: %s", what, v)
		} else {
			b.Logf("%s: best practice: %s", what, v)
		}
	}
}

func quote2(list []string) string { return `['` + strings.Join(list, `', '`) + `']` }

// wantSound fails if the page lacks what each page has: a language, a title, headings in order, and room for itself.
func (b *tab) wantSound(what string) {
	b.Helper()
	for _, fault := range value[[]string](b, `(() => {
		const faults = [];
		const seen = [...document.querySelectorAll('h1, h2, h3, h4')].filter((e) => e.checkVisibility());
		const levels = seen.map((e) => Number(e.tagName[1]));
		if (document.documentElement.lang !== 'en') faults.push('it has no language');
		if (levels.filter((l) => l === 1).length !== 1) faults.push('it has ' + levels.filter((l) => l === 1).length + ' first headings');
		levels.forEach((l, i) => l > (levels[i - 1] ?? 0) + 1 && faults.push('a heading skips a level: ' + seen[i].textContent));
		const page = document.scrollingElement;
		if (page.scrollWidth > innerWidth) faults.push('it scrolls sideways: ' + page.scrollWidth + ' > ' + innerWidth + ': ' +
			[...document.querySelectorAll('main *, header *')].filter((e) => e.checkVisibility() && !e.closest('.scroll, .unseen, .sr, .skip') && e.getBoundingClientRect().right > innerWidth + 1)
				.slice(0, 5).map((e) => e.outerHTML.slice(0, 150)).join('\n'));
		return faults;
	})()`) {
		b.Errorf("%s: %s", what, fault)
	}
}

// ways are those in which each page is looked at.
var ways = []struct {
	name          string
	dark          bool
	width, height int64
}{{"light", false, 1280, 800}, {"dark", true, 1280, 800}, {"narrow", false, 360, 740}}

// wantWell looks at what the page shows in each way.
func (b *tab) wantWell(what string) {
	b.Helper()
	for _, w := range ways {
		b.looks(w.dark, w.width, w.height)
		b.wantAccessible(what + ", " + w.name)
		b.wantWhole(what + ", " + w.name)
	}
}

// titles holds which page has a title: no two have the same.
type titles map[string]string

func (seen titles) want(b *tab, path string) {
	b.Helper()
	place, _, _ := strings.Cut(path, "?")
	title := value[string](b, `document.title`)
	if other, ok := seen[title]; ok && other != place {
		b.Errorf("%s has the title of %s: %s", place, other, title)
	}
	seen[title] = place
}

func TestPages_areAccessible(t *testing.T) {
	t.Parallel()
	f := newFilled(t)
	b := f.comes()
	b.allow(`status of 404 .*/v1/(schedules/(gone|retired|never-was)|tasks/never-was)`)
	seen := titles{}
	for _, path := range []string{
		"/", "/beat", "/beat?view=table", "/beat?zoom=1d&order=worst", "/schedules", "/schedules?state=failing", "/schedules?state=deleted",
		"/schedules/well", "/schedules/fails", "/schedules/nightly", "/schedules/by-hand", "/schedules/halted", "/schedules/gone",
		"/schedules/retired", "/schedules/never-was", "/schedules/nightly?edit=true", "/new-schedule",
		"/tasks", "/tasks?state=running", "/tasks?state=due", "/tasks?state=dead", "/tasks?state=done", "/tasks?type=none",
		"/tasks/runs", "/tasks/due", "/tasks/waits", "/tasks/dead", "/tasks/refused", "/tasks/done", "/tasks/never-was",
		"/dead", "/enqueue", "/instances", "/events", "/audit?since=1h", "/login",
	} {
		b.open(path)
		b.wantWell(path)
		b.wantWholeInAnySize(path)
		seen.want(b, path)
	}
}

func TestPages_areAccessibleWithoutAnything(t *testing.T) {
	t.Parallel()
	b := newGuarded(t).comes()
	for _, path := range []string{
		"/", "/beat", "/beat?view=table", "/schedules", "/schedules?state=deleted", "/new-schedule", "/tasks", "/dead", "/enqueue", "/instances", "/events", "/audit",
	} {
		b.open(path)
		b.wantWell(path)
	}
}

// A scene is what a page shows after somebody has done something.
type scene struct {
	name, path string
	do         func(b *tab)
}

var scenes = []scene{
	{"a slot is chosen", "/beat", func(b *tab) {
		b.click("#legend summary")
		b.eval(`document.querySelector('#rows').focus()`)
		testredis.Eventually(b.T, patience, func() bool { // the slots come after the names
			b.keys(kb.ArrowLeft)
			return b.has("#story dl")
		}, "no slot is chosen")
	}},
	{"a task is about to be cancelled", "/tasks/due", dialog("#act [data-act=cancel]")},
	{"a task is about to be deleted", "/tasks/dead", dialog("#act [data-act=delete]")},
	{"all dead tasks are about to be deleted", "/tasks?state=dead", dialog("#bulk [data-act=delete]")},
	{"the dead of a group are about to be retried", "/dead", dialog("#groups .acts [data-act=retry]")},
	{"a schedule is about to be triggered", "/schedules/well", dialog("#act [data-act=trigger]")},
	{"a schedule is about to be backfilled", "/schedules/nightly", dialog("#act [data-act=backfill]")},
	{"a schedule is about to be deleted", "/schedules/by-hand", dialog("#act [data-act=delete]")},
	{"a schedule is about to say again what it said", "/schedules/by-hand", dialog("#history [data-act=revert]")},
	{"a change is shown before it is made", "/schedules/by-hand?edit=true", func(b *tab) {
		b.fills("#every", "5s")
		b.fills("#payload", `{"order":43}`)
		b.click("#definition [type=submit]")
		b.waits(`document.querySelector('dialog[open] .diff')`)
	}},
	{"a schedule has faults", "/new-schedule", func(b *tab) {
		b.fills("#name-of", "new")
		b.fills("#every", "often")
		b.fills("#payload", "{")
		b.click("#definition [type=submit]")
		b.waits(`document.querySelector('#definition [aria-invalid]')`)
	}},
	{"a task has faults", "/enqueue", func(b *tab) {
		b.fills("#type", "echo")
		b.fills("#payload", "{")
		b.click("#enqueue [type=submit]")
		b.waits(`document.querySelector('#enqueue [aria-invalid]')`)
	}},
	{"something was done", "/schedules", func(b *tab) {
		b.click("#list [data-act=resume]")
		b.waits(`document.querySelector('#toasts .toast')`)
	}},
	{"a token was refused", "/login", func(b *tab) {
		b.fills("#token", "not-a-token-of-this-server")
		b.click("#login [type=submit]")
		b.waits(`!document.querySelector('#error').hidden`)
	}},
}

// dialog opens a dialog, and waits until it is ready.
func dialog(selector string) func(b *tab) {
	return func(b *tab) {
		b.click(selector)
		b.waits(`document.querySelector('dialog[open] [data-act=ok]:not([disabled])')`)
	}
}

// leavesForms has the browser leave a form that was changed, about which it asks.
func (b *tab) leavesForms() {
	b.Helper()
	err := chromedp.Listen(b.ctx, func(event any) {
		if _, ok := event.(*page.EventJavascriptDialogOpening); ok {
			go func() {
				_, _ = chromedp.Call(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
			}()
		}
	})
	if err != nil {
		b.Fatal(err)
	}
}

func TestScenes_areAccessible(t *testing.T) {
	t.Parallel()
	b := newFilled(t).comes()
	b.allow(`status of (401|422) |status of 400 .*/v1/preview|ERR_INTERNET_DISCONNECTED`)
	b.leavesForms()
	for _, s := range scenes {
		b.looks(false, 1280, 800)
		b.open(s.path)
		s.do(b)
		b.wantWell(s.path + ": " + s.name)
	}
	for _, path := range []string{"/", "/beat", "/schedules", "/schedules/well", "/tasks"} {
		b.looks(false, 1280, 800)
		b.open(path)
		b.refuses(true)
		b.waits(`document.querySelector('main [data-state=stale]')`)
		b.wantWell(path + ", stale")
		b.open(path)
		b.waits(`document.querySelector('main [data-state=failed]')`)
		b.wantWell(path + ", failed")
		b.refuses(false)
	}
}
