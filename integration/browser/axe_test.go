package browser

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"testing"
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

// looksOf are the ways in which each page is looked at.
var looksOf = []struct {
	name          string
	dark          bool
	width, height int64
}{{"light", false, 1280, 800}, {"dark", true, 1280, 800}, {"narrow", false, 360, 740}, {"narrow and dark", true, 360, 740}}

// wantWell looks at what the page shows in each way.
func (b *tab) wantWell(what string) {
	b.Helper()
	for _, l := range looksOf {
		b.looks(l.dark, l.width, l.height)
		b.wantAccessible(what + ", " + l.name)
		b.wantSound(what + ", " + l.name)
	}
}

func TestPages_areAccessible(t *testing.T) {
	t.Parallel()
	f := newFilled(t)
	b := f.comes()
	b.allow(`status of 404 .*/v1/(schedules/(gone|retired|never-was)|tasks/never-was)`)
	titles := map[string]string{}
	for _, path := range []string{
		"/", "/beat", "/beat?view=table", "/beat?zoom=1d&order=worst", "/schedules", "/schedules?state=failing", "/schedules?state=deleted",
		"/schedules/well", "/schedules/fails", "/schedules/nightly", "/schedules/by-hand", "/schedules/halted", "/schedules/gone", "/schedules/retired", "/schedules/never-was",
		"/schedules/by-hand?edit=true", "/schedules/nightly?edit=true", "/new-schedule",
		"/tasks", "/tasks?state=running", "/tasks?state=due", "/tasks?state=dead", "/tasks?state=done", "/tasks?type=none",
		"/tasks/runs", "/tasks/due", "/tasks/waits", "/tasks/dead", "/tasks/refused", "/tasks/done", "/tasks/never-was",
		"/dead", "/enqueue", "/instances", "/events", "/audit", "/audit?since=1h", "/login",
	} {
		b.open(path)
		b.wantWell(path)
		page, _, _ := strings.Cut(path, "?")
		title := value[string](b, `document.title`)
		if other, ok := titles[title]; ok && other != page {
			b.Errorf("%s has the title of %s: %s", page, other, title)
		}
		titles[title] = page
	}
}
