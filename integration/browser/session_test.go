package browser

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// secrets are those of the tokens of a world, by role.
var secrets = map[string]string{"viewer": "viewer-0123456789abcdef", "operator": "operator-0123456789abcdef", "admin": "admin-0123456789abcdef"}

// guarded is the head of a config with a token for each role, in a file.
func (w *world) guarded() string {
	w.Helper()
	var tokens []string
	for _, role := range []string{"viewer", "operator", "admin"} {
		tokens = append(tokens, fmt.Sprintf("{name: the-%s, role: %s, token_file: %q}", role, role, w.File(role+".token", secrets[role])))
	}
	return strings.Replace(head, "api: {", "api: {tokens: ["+strings.Join(tokens, ", ")+"], ", 1)
}

// signsIn signs in with the token of a role, by the keyboard, and waits for the page that comes then.
func (b *tab) signsIn(role, then string) {
	b.Helper()
	b.focused("#token")
	b.keys(secrets[role] + kb.Enter)
	b.comes(then)
	b.shows(".who", role)
}

// me is who the API says that the browser is: the status, and the name.
func (b *tab) me() string {
	b.Helper()
	return value[string](b, `fetch('/v1/me').then(async (r) => r.status + ' ' + ((await r.json()).name ?? ''))`)
}

const turnedAway = `status of (401|403) ` // Chromium says so of what is refused

// One signs in by the keyboard, is led to where one came from and nowhere else, and is out when one signs out.
func TestSession_beginsAndEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", w.guarded())
	b := w.sits()
	b.allow(turnedAway)
	b.allow(`status of 404 .*(evil|favicon)`) // an address of this server that is of no page

	b.open("/schedules?state=paused")
	b.comes("/login?next=%2Fschedules%3Fstate%3Dpaused")
	if b.me() != "401 " || b.has("nav") {
		t.Errorf("nobody has signed in, and is %q", b.me())
	}
	b.focused("#token")
	b.keys("not-the-token-of-anybody" + kb.Enter)
	b.shows("#error[role=alert]", "the token is not known")
	b.comes("/login?next=%2Fschedules%3Fstate%3Dpaused")
	b.signsIn("viewer", "/schedules?state=paused") // it takes the place of the wrong one
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
	b.open("/tasks")
	b.comes("/login?next=%2Ftasks")

	for _, next := range []string{"//evil.example/a", "/x/..//evil.example/a", "https://evil.example/", `/\evil.example`, "javascript:void(location.href='/tasks')", "http://["} {
		b.open("/login?next=" + strings.NewReplacer("/", "%2F", ":", "%3A", "[", "%5B", `\`, "%5C", "(", "%28", "'", "%27", "=", "%3D").Replace(next))
		b.focused("#token")
		b.keys(secrets["admin"] + kb.Enter)
		b.waits(`location.protocol !== 'chrome-error:' && location.pathname !== '/login' && document.readyState === 'complete'`)
		if at := value[string](b, `location.origin`); at != b.base {
			t.Errorf("%s leads to %s", next, at)
		}
		b.settled()
	}
}

// A session is worth what its token is worth: it cannot be made up or made longer, and it ends in an open page when the token is replaced.
func TestSession_endsWithItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", w.guarded())
	b := w.sits()
	b.allow(turnedAway)
	b.open("/login")
	b.signsIn("admin", "/")

	cookie := w.cookie(b)
	parts := strings.Split(cookie.Value, ".")
	if len(parts) != 3 {
		t.Fatalf("the cookie is %q", cookie.Value)
	}
	for what, forged := range map[string]string{
		"that lasts longer": "9" + parts[0][1:] + "." + parts[1] + "." + parts[2],
		"of another":        strings.Join([]string{parts[0], base64.RawURLEncoding.EncodeToString([]byte("the-viewer")), parts[2]}, "."),
		"without a proof":   parts[0] + "." + parts[1] + ".",
		"made up":           "admin",
	} {
		sends(b, network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: forged, URL: b.base, HTTPOnly: new(true)})
		if me := b.me(); me != "401 " {
			t.Errorf("with a cookie %s one is %q", what, me)
		}
	}
	b.open("/instances")
	b.comes("/login?next=%2Finstances")
	sends(b, network.SetCookie, network.SetCookieParams{Name: cookie.Name, Value: cookie.Value, URL: b.base, HTTPOnly: new(true)})
	b.open("/instances")
	b.comes("/instances")

	// The browser drops the cookie at its end: an open page says so.
	sends(b, network.DeleteCookies, network.DeleteCookiesParams{Name: cookie.Name, URL: b.base})
	b.comes("/login?next=%2Finstances")
	b.signsIn("admin", "/instances")

	// The token is replaced, while a page is open that asks again and again, and one that does not.
	still := b.another()
	still.looks(false, 1280, 800)
	still.allow(turnedAway)
	still.open("/audit")
	still.shows("#live", "live")
	w.File("admin.token", "another-0123456789abcdef")
	b.comes("/login?next=%2Finstances")
	still.comes("/login?next=%2Faudit")
	if me := b.me(); me != "401 " {
		t.Errorf("the token is replaced, and one is %q", me)
	}
	b.focused("#token")
	b.keys("another-0123456789abcdef" + kb.Enter)
	b.comes("/instances")
}

// cookie is the session of a browser.
func (w *world) cookie(b *tab) *network.Cookie {
	w.Helper()
	res := call(b, network.GetCookies, network.GetCookiesParams{URLs: []string{b.base}})
	if len(res.Cookies) != 1 {
		w.Fatalf("%d cookies", len(res.Cookies))
	}
	if c := res.Cookies[0]; !c.HTTPOnly || c.SameSite != network.CookieSameSiteStrict {
		w.Errorf("the cookie is %+v", c)
	}
	return res.Cookies[0]
}

// A page of another port of the same host gets the cookie sent with its requests, and one under another name of the host does not. Neither does
// anything in the name of the one who looks, nor signs them in or out.
func TestSession_obeysNoOtherPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", w.guarded(), w.Beat("a", time.Second))
	evil := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		_, _ = rw.Write([]byte(`<!doctype html><title>another</title><link rel="icon" href="data:,"><form method="post"><button>Win</button></form>`))
	}))
	t.Cleanup(evil.Close)
	b := w.sits()
	b.allow(turnedAway)
	b.allow(`CORS|ERR_FAILED|ERR_BLOCKED_BY_RESPONSE|favicon`)
	b.open("/login")
	b.signsIn("admin", "/")

	for _, at := range []string{evil.URL, strings.Replace(evil.URL, "127.0.0.1", "localhost", 1)} {
		b.do(chromedp.Navigate(at))
		send := func(method, path, body string) {
			t.Helper()
			for _, mode := range []string{"no-cors", "cors"} {
				b.eval(fmt.Sprintf(`fetch(%s, { method: %s, mode: %s, credentials: 'include', body: %s || undefined }).catch(() => {})`,
					quote(b.base+path), quote(method), quote(mode), quote(body)))
			}
		}
		send("POST", "/v1/schedules/a/pause", "")
		send("POST", "/session", `{"token": "`+secrets["viewer"]+`"}`)
		b.eval(fmt.Sprintf(`fetch(%s, { method: 'DELETE', credentials: 'include' }).catch(() => {})`, quote(b.base+"/session")))
		if read := value[string](b, `fetch(`+quote(b.base+"/v1/me")+`, { credentials: 'include' }).then((r) => r.text(), () => '')`); read != "" {
			t.Errorf("a page at %s reads %s", at, read)
		}
		b.eval(fmt.Sprintf(`document.forms[0].action = %s`, quote(b.base+"/v1/schedules/a/pause")))
		b.click("button")
		b.waits(`location.href.endsWith('/pause')`)
		b.shows("body", "urn:onbeat:problem:")
		if s := said[struct{ Paused bool }](w, "schedules", "show", "a"); s.Paused {
			t.Errorf("a page at %s has paused the schedule", at)
		}
		b.open("/")
		if me := b.me(); me != "200 the-admin" {
			t.Errorf("a page at %s has changed who one is: %s", at, me)
		}
	}

	// The same by a page of this server is done.
	if status := b.fetches("POST", "/v1/schedules/a/pause", ""); status != http.StatusOK {
		t.Errorf("status %d", status)
	}
	if s := said[struct{ Paused bool }](w, "schedules", "show", "a"); !s.Paused {
		t.Error("it is not paused")
	}
	if list := w.incidents("schedule paused"); len(list) != 1 || list[0].Fields["by"] != "the-admin" {
		t.Errorf("%+v", list)
	}
}
