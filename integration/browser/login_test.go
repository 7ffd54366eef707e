package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

const turnedAway = `status of (401|403) ` // Chromium logs each refusal

// me is the answer of the API to the question who the browser is: the status, and the name.
func (b *tab) me() string {
	b.Helper()
	return value[string](b, `fetch('/v1/me').then(async (r) => r.status + ' ' + ((await r.json()).name ?? ''))`)
}

// Somebody signs in by the keyboard, and is led to the page that they asked for and nowhere else. They are out when they sign out, or when the
// token is replaced.
func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", w.guarded())
	b := w.browse()
	b.allow(turnedAway)
	b.allow(`status of 404 .*(evil|favicon)`) // an address of this server that is of no page
	b.open("/schedules?state=paused")
	b.comes("/login?next=%2Fschedules%3Fstate%3Dpaused")
	if b.me() != "401 " || b.has("nav") {
		t.Errorf("nobody has signed in, and is %q", b.me())
	}
	b.focused("#token")
	b.keys("not-the-token-of-anybody" + kb.Enter)
	b.shows("#error[role=alert]", "not known")
	b.signsIn(tokens["viewer"], "/schedules?state=paused") // it takes the place of the wrong one
	b.shows(".who", "viewer")
	if me := b.me(); me != "200 the-viewer" {
		t.Errorf("the viewer is %q", me)
	}
	if cookie := value[string](b, `document.cookie`); cookie != "" {
		t.Errorf("a script can read the cookie %q", cookie)
	}
	b.tabs("#signout")
	b.keys(kb.Enter)
	b.comes("/login")
	if me := b.me(); me != "401 " {
		t.Errorf("one has signed out, and is %q", me)
	}
	for _, next := range []string{"//evil.example/a", `/\evil.example`, "javascript:void(location.href='/tasks')"} {
		b.open("/login?next=" + url.QueryEscape(next))
		b.focused("#token")
		b.keys(tokens["admin"] + kb.Enter)
		b.waits(`location.protocol !== 'chrome-error:' && location.pathname !== '/login' && document.readyState === 'complete'`)
		if at := value[string](b, `location.origin`); at != b.base {
			t.Errorf("%s leads to %s", next, at)
		}
	}

	// The token is replaced: an open page learns of it.
	b.open("/audit")
	b.shows("#live", "live")
	b.allow(gone) // its stream of events ends
	w.File("admin.token", "another-0123456789abcdef")
	b.comes("/login?ended=true&next=%2Faudit")
	b.shows("#ended", "has ended")
	b.signsIn("another-0123456789abcdef", "/audit")
}

// A page of another port of the same host gets the cookie sent with its requests, and a page under another name of the host does not. Neither
// page does anything in the name of the viewer, nor signs them out.
func TestSession_obeysNoOtherPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", w.guarded(), w.Beat("a", time.Second))
	evil := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = rw.Write([]byte(`<!doctype html><title>another</title><link rel="icon" href="data:,"><form method="post"><button>Win</button></form>`))
	}))
	t.Cleanup(evil.Close)
	b := w.browse()
	b.allow(turnedAway)
	b.allow(`CORS|ERR_FAILED|ERR_BLOCKED_BY_RESPONSE|favicon`)
	b.open("/login")
	b.signsIn(tokens["admin"], "/")
	for _, at := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
		b.do(chromedp.Navigate(at))
		for _, call := range []string{
			`'/v1/schedules/a/pause', { method: 'POST', mode: 'no-cors', `, `'/v1/schedules/a/pause', { method: 'POST', `, `'/session', { method: 'DELETE', `,
		} {
			b.eval(fmt.Sprintf(`fetch(%s + %s credentials: 'include' }).catch(() => {})`, quote(b.base), call))
		}
		if read := value[string](b, `fetch(`+quote(b.base+"/v1/me")+`, { credentials: 'include' }).then((r) => r.text(), () => '')`); read != "" {
			t.Errorf("a page at %s reads %s", at, read)
		}
		b.eval(fmt.Sprintf(`document.forms[0].action = %s`, quote(b.base+"/v1/schedules/a/pause")))
		b.click("button")
		b.waits(`location.href.endsWith('/pause')`)
		b.shows("body", "urn:onbeat:problem:")
		if w.rule("a").Paused {
			t.Errorf("a page at %s has paused the schedule", at)
		}
		b.open("/")
		if me := b.me(); me != "200 the-admin" {
			t.Errorf("a page at %s has changed who one is: %s", at, me)
		}
	}

	// A page of this server does it.
	b.open("/schedules/a")
	b.click("#act [data-act=pause]")
	b.fills("dialog[open] [name=reason]", "the bank is closed")
	b.agrees()
	b.shows("#schedule .lead", "the bank is closed")
	if list := w.incidents("schedule paused"); len(list) != 1 || list[0].Fields["by"] != "the-admin" || list[0].Fields["reason"] != "the bank is closed" {
		t.Errorf("%+v", list)
	}
}
