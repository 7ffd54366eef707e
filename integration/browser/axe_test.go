package browser

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/internal/testredis"
)

// axe is axe-core 4.14.1, which finds what people with disabilities stumble over. It comes to the page by the DevTools protocol, so
// the policy of the page stays as it is.
//
//go:embed testdata/axe/axe.min.js
var axe string

// level is what pages must fulfil: WCAG 2.2, levels A and AA.
var level = []string{"wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"}

// wantAccessible fails if axe finds that the page, as it is now, breaks one of the rules. For level it takes the rules with these tags.
func (b *tab) wantAccessible(what string, rules ...string) {
	b.Helper()
	if !value[bool](b, `typeof axe === 'object'`) {
		b.eval(axe + "\n;undefined")
	}
	kind := "rule"
	if slices.Equal(rules, level) {
		kind = "tag"
	}
	for _, fault := range value[[]string](b, `axe.run(document, {
		runOnly: { type: '`+kind+`', values: `+quote(rules)+` }, resultTypes: ['violations'],
	}).then((r) => r.violations.map((v) => [v.id + ': ' + v.help, ...v.nodes.slice(0, 5).map((n) => n.target + '\n' + n.html.slice(0, 300) + '\n' + n.failureSummary)].join('\n')))`) {
		b.Errorf("%s: %s", what, fault)
	}
}

// faults lists the faults of a page. Each page has a language, one first heading, headings in order, and room for itself and for each
// control: no part of a control lies outside the page, and its text is not cut off unless a title has it.
const faults = `(() => {
	const faults = [], seen = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility());
	const levels = seen('h1, h2, h3, h4').map((e) => Number(e.tagName[1]));
	if (document.documentElement.lang !== 'en') faults.push('no language');
	if (levels.filter((l) => l === 1).length !== 1) faults.push('first headings: ' + levels);
	if (levels.some((l, i) => l > (levels[i - 1] ?? 0) + 1)) faults.push('a heading skips a level: ' + levels);
	if (document.scrollingElement.scrollWidth > innerWidth) faults.push('it scrolls sideways: ' + document.scrollingElement.scrollWidth);
	for (const e of seen('button, a, input, select, textarea, summary')) {
		const r = e.getBoundingClientRect(), outside = r.left < -1 || r.right > innerWidth + 1;
		const cut = !e.title && getComputedStyle(e).overflowX === 'hidden' && e.scrollWidth > e.clientWidth + 1;
		if (!e.matches('.skip') && (cut || (outside && !e.closest('.scroll, dialog')))) faults.push('cut off: ' + e.outerHTML.slice(0, 200));
	}
	return faults;
})()`

func (b *tab) wantWhole(what string) {
	b.Helper()
	for _, fault := range value[[]string](b, faults) {
		b.Errorf("%s: %s", what, fault)
	}
}

// spacing is the spacing of text that WCAG 1.4.12 lets a reader set.
const spacing = `(() => {
	const sheet = new CSSStyleSheet();
	sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } p { margin-bottom: 2em !important }');
	document.adoptedStyleSheets.push(sheet);
})()`

// wantWell looks at what the page shows in light, in dark, and on a phone.
func (b *tab) wantWell(what string) {
	b.Helper()
	b.wantAccessible(what, level...)
	b.wantWhole(what)
	b.looks(true, 1280, 800)
	b.wantAccessible(what+" in dark", "color-contrast", "link-in-text-block")
	b.looks(false, 360, 740)
	b.wantAccessible(what+" on a phone", "target-size", "color-contrast", "scrollable-region-focusable")
	b.wantWhole(what + " on a phone")
}

// A scene is what a page shows after somebody has done something.
type scene struct {
	path, what string
	do         func(b *tab)
}

// dialog opens a dialog, and waits until it is ready.
func dialog(selector string) func(b *tab) {
	return func(b *tab) {
		b.click(selector)
		b.waits(`document.querySelector('dialog[open] [data-act=ok]:not([disabled])')`)
	}
}

var scenes = []scene{
	{"/beat", "a slot is chosen", func(b *tab) {
		b.click("#legend summary")
		b.eval(`document.querySelector('#rows').focus()`)
		testredis.Eventually(b.T, patience, func() bool { // the slots come after the names
			b.keys(kb.ArrowLeft)
			return b.has("#story dl")
		}, "no slot is chosen")
	}},
	{"/tasks/due", "a task is about to be cancelled", dialog("#act [data-act=cancel]")},
	{"/tasks?state=dead", "all dead tasks are about to be deleted", dialog("#bulk [data-act=delete]")},
	{"/tasks?state=dead", "some dead tasks are chosen", func(b *tab) { b.click("#list .pick") }},
	{"/schedules", "some schedules are chosen", func(b *tab) {
		b.click("#list [data-choose]")
		b.waits(`!document.querySelector('#chosen').hidden`)
	}},
	{"/", "anything is searched for", func(b *tab) {
		b.click("#search")
		b.waits(`document.querySelectorAll('dialog.search li').length > 8 && document.querySelector('dialog.search [data-field=said]').textContent === ''`)
	}},
	{"/dead", "a group is open", func(b *tab) {
		const fails = "#groups tr:has(a[href='/schedules/fails'])"
		b.click(fails + " summary")
		b.waits(`document.querySelectorAll("` + fails + ` details li").length > 0`)
	}},
	{"/dead", "the dead of a group are about to be retried", dialog("#groups .acts [data-act=retry]")},
	{"/schedules/nightly", "a schedule is about to be paused", dialog("#act [data-act=pause]")},
	{"/schedules/fails", "a schedule is about to be backfilled", dialog("#act [data-act=backfill]")},
	{"/schedules/by-hand", "a schedule is about to say again what it said", dialog("#history [data-act=revert]")},
	{"/schedules/by-hand?edit=true", "a change is shown before it is made", func(b *tab) {
		b.fills("#every", "5s")
		b.click("#definition [type=submit]")
		b.waits(`document.querySelector('dialog[open] .diff')`)
	}},
	{"/new-schedule", "a schedule has faults", func(b *tab) {
		b.fills("#every", "often")
		b.fills("#payload", "{")
		b.click("#definition [type=submit]")
		b.waits(`document.querySelector('#definition [aria-invalid]')`)
	}},
	{"/enqueue", "a task has faults", func(b *tab) {
		b.fills("#type", "echo")
		b.fills("#payload", "{")
		b.click("#enqueue [type=submit]")
		b.waits(`document.querySelector('#enqueue [aria-invalid]')`)
	}},
	{"/schedules/well", "the server is away", func(b *tab) {
		b.refuses(true)
		b.waits(`document.querySelector('main [data-state=stale]')`)
	}},
	{"/tasks", "the server never was there", func(b *tab) { b.waits(`document.querySelector('main [data-state=failed]')`) }},
	{"/login", "a token was refused", func(b *tab) {
		b.refuses(false)
		b.fills("#token", "not-a-token-of-this-server")
		b.click("#login [type=submit]")
		b.waits(`!document.querySelector('#error').hidden`)
	}},
}

// refuses has the browser reach no API, as if the server were away.
func (b *tab) refuses(away bool) {
	b.Helper()
	var rules []*network.Conditions
	if away {
		rules = append(rules, &network.Conditions{URLPattern: "*://*:*/v1/*", Offline: true})
	}
	sends(b, network.Enable, network.EnableParams{})
	sends(b, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{MatchedNetworkConditions: rules})
}

func accessible(w *world) {
	b := w.comes("admin")
	b.allow(`status of 404 .*/v1/(schedules/gone|tasks/never-was)|status of 422 |status of 400 .*/v1/preview|ERR_INTERNET_DISCONNECTED`)
	seen := map[string]string{} // no two pages have the same title
	for _, path := range []string{
		"/", "/beat", "/beat?view=table", "/schedules", "/schedules?state=deleted", "/schedules/fails", "/schedules/by-hand", "/schedules/gone", "/schedules/nightly?edit=true", "/new-schedule",
		"/tasks", "/tasks?state=dead", "/tasks/runs", "/tasks/dead", "/tasks/refused", "/tasks/never-was", "/dead", "/enqueue", "/instances", "/events", "/audit?since=1h", "/trends", "/login",
	} {
		b.looks(false, 1280, 800)
		b.open(path)
		b.wantWell(path)
		b.looks(false, 320, 256) // 1280 pixels at 400 %
		b.eval(spacing)
		b.wantWhole(path + " at 400 % and spaced")
		title, place := value[string](b, `document.title`), strings.Split(path, "?")[0]
		if other, ok := seen[title]; ok && other != place {
			b.Errorf("%s has the title of %s: %s", place, other, title)
		}
		seen[title] = place
	}
	for _, s := range scenes {
		b.looks(false, 1280, 800)
		b.open(s.path)
		s.do(b)
		b.wantWell(s.path + ": " + s.what)
	}

	// A message goes by itself, and does not move for readers who like no motion.
	b.looks(false, 1280, 800)
	b.open("/schedules")
	b.click("#list .acts [data-act=resume]")
	b.waits(`document.querySelector('#toasts .toast') && getComputedStyle(document.querySelector('.toast')).animationName === 'none'`)
	b.eval(`scrollTo(0, 0)`) // the header lies over a page that is scrolled
	b.wantAccessible("a message", level...)

	// Readers who have the system choose the colours see the marks all the same.
	sends(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}}})
	for path, marks := range map[string]string{"/": ".attention li", "/tasks/dead": ".life li[data-kind=bad]", "/instances": ".live"} {
		b.open(path)
		b.waits(`document.querySelector('` + marks + `')`)
		if !value[bool](b, `getComputedStyle(document.querySelector('`+marks+`'), '::before').backgroundColor !== getComputedStyle(document.body).backgroundColor`) {
			w.Errorf("%s: the marks of %s have the colour of their ground", path, marks)
		}
	}
}
