package browser

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// The pages with all that they can show, and without anything: can everybody use them, are they light, and does each role see what it may do?
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", w.guarded())
	b := w.comes("admin")
	for _, path := range []string{"/", "/beat", "/schedules", "/tasks", "/dead", "/instances", "/events", "/audit"} {
		b.open(path)
		b.wantAccessible(path+" of an empty namespace", level...)
	}
	w.filled()
	for _, part := range []struct {
		name string
		test func(*world)
	}{{"weight", weight}, {"roles", roles}, {"axe", accessible}} {
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

// What the first view of a page may have the browser load: the document, scripts, styles and first answers of the API, as they come over
// the wire.
const (
	mostWeight   = 150 << 10
	mostRequests = 50
)

// wire counts what comes over the wire.
type wire struct {
	mu              sync.Mutex
	hosts           map[string]bool
	bytes, requests int
}

func (w *wire) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			w.hosts[u.Host] = true
		}
	case *network.EventLoadingFinished:
		w.bytes += int(e.EncodedDataLength)
		w.requests++
	}
}

// read returns what came since the last call.
func (w *wire) read() (bytes, requests int, hosts map[string]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	bytes, requests, hosts = w.bytes, w.requests, w.hosts
	w.bytes, w.requests, w.hosts = 0, 0, map[string]bool{}
	return bytes, requests, hosts
}

func weight(w *world) {
	b := w.comes("admin")
	heard := &wire{hosts: map[string]bool{}}
	if err := chromedp.Listen(b.ctx, heard.hear); err != nil {
		w.Fatal(err)
	}
	sends(b, network.Enable, network.EnableParams{})
	sends(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	for _, path := range []string{
		"/", "/beat", "/schedules", "/schedules/well", "/schedules/well?edit=true", "/new-schedule", "/tasks", "/tasks/dead", "/dead", "/enqueue", "/instances", "/events", "/audit", "/login",
	} {
		b.do(chromedp.Navigate("about:blank")) // so that the page before asks nothing more
		heard.read()
		b.open(path)
		took := value[float64](b, `performance.now()`)
		bytes, requests, hosts := heard.read()
		w.Logf("%-26s %5.1f KiB, %d requests, shown after less than %.0f ms", path, float64(bytes)/1024, requests, took)
		if bytes > mostWeight || requests > mostRequests || requests < 3 {
			w.Errorf("%s: its first view loads %d bytes in %d requests, want at most %d in %d", path, bytes, requests, mostWeight, mostRequests)
		}
		if len(hosts) != 1 || !hosts[strings.TrimPrefix(w.front.URL, "http://")] {
			w.Errorf("%s asks other hosts: %v", path, hosts)
		}
	}
}

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
			"/new-schedule", "/tasks", "/tasks?state=dead", "/tasks?state=planned", "/tasks?state=done", "/tasks/runs", "/tasks/due", "/tasks/dead", "/dead", "/enqueue", "/instances", "/events", "/audit",
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
