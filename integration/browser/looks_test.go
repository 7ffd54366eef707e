package browser

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
)

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

// spacing is the spacing of text that WCAG 1.4.12 lets a reader set.
const spacing = `(() => {
	const sheet = new CSSStyleSheet();
	sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } p { margin-bottom: 2em !important }');
	document.adoptedStyleSheets.push(sheet);
})()`

// cut are controls of which a part cannot be seen: it lies outside the page, or of its text something is cut off that no title has.
const cut = `[...document.querySelectorAll('button, a, input, select, textarea, summary')].filter((e) => e.checkVisibility() && !e.matches('.skip')).filter((e) => {
	const r = e.getBoundingClientRect(), scrolls = e.closest('.scroll, dialog');
	return (!scrolls && (r.left < -1 || r.right > innerWidth + 1)) || (!e.title && getComputedStyle(e).overflowX === 'hidden' && e.scrollWidth > e.clientWidth + 1);
}).map((e) => e.outerHTML.slice(0, 200) + ' ' + JSON.stringify(e.getBoundingClientRect()))`

func (b *tab) wantWhole(what string) {
	b.Helper()
	b.wantSound(what)
	for _, e := range value[[]string](b, cut) {
		b.Errorf("%s: cut off: %s", what, e)
	}
}

// wantWholeInAnySize fails if something is lost when a page of 1280 pixels is zoomed to 200 % (it has 640 then) or 400 %, or spaced.
func (b *tab) wantWholeInAnySize(what string) {
	b.Helper()
	b.looks(false, 640, 400)
	b.wantWhole(what + " at 200 %")
	b.looks(false, 320, 256)
	b.wantWhole(what + " at 400 %")
	b.eval(spacing)
	b.wantWhole(what + " at 400 % and spaced")
	b.looks(false, 1280, 800)
	b.wantWhole(what + ", spaced")
}

// tones are the colours of the marks in the picture. They are read from a copy: Chromium warns of who reads a picture often.
const tones = `(() => {
	const c = document.querySelector('#slots'), copy = new OffscreenCanvas(c.width, c.height).getContext('2d', { willReadFrequently: true });
	copy.drawImage(c, 0, 0);
	const d = copy.getImageData(0, 0, c.width, c.height).data, n = {};
	for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) n[[d[i], d[i + 1], d[i + 2]]] = (n[[d[i], d[i + 1], d[i + 2]]] ?? 0) + 1;
	return Object.values(n).filter((x) => x > 20).length;
})()`

// Who has the system choose the colours sees the marks all the same: those of the picture, and those beside texts.
func TestMarks_areSeenInForcedColours(t *testing.T) {
	t.Parallel()
	b := newFilled(t).comes()
	sends(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "forced-colors", Value: "active"}}})
	b.open("/beat")
	b.waits(tones + ` >= 4`)
	for path, marks := range map[string]string{"/": ".attention li", "/tasks/dead": ".life li[data-kind=bad]", "/instances": ".live"} {
		b.open(path)
		b.waits(`document.querySelector('` + marks + `')`)
		if !value[bool](b, `getComputedStyle(document.querySelector('`+marks+`'), '::before').backgroundColor !== getComputedStyle(document.body).backgroundColor`) {
			t.Errorf("%s: the marks of %s have the colour of their ground", path, marks)
		}
	}
}

// Who wants less motion gets none.
func TestPages_moveNothingForWhoWantsLessMotion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("a", time.Hour))
	b := w.browse()
	for motion, want := range map[string]int{"reduce": 0, "no-preference": 1} {
		sends(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: motion}}})
		b.open("/schedules")
		b.click("#list [data-act=pause], #list [data-act=resume]")
		b.waits(`document.querySelector('.toast')`)
		got := value[int](b, `document.querySelectorAll('.toast').length && getComputedStyle(document.querySelector('.toast')).animationName === 'rise' ? 1 : 0`)
		if got != want {
			t.Errorf("with %s, %d animations", motion, got)
		}
	}
}
