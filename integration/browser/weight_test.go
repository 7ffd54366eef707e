package browser

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/onbeat/onbeat/integration/internal/rig"
)

// mostWeight is how much the first view of a page may have the browser load: the document, scripts, styles and first answers of the API,
// as they come over the wire.
const mostWeight = 150 << 10

// table is a table in Markdown.
type table []string

func (t table) row(cells ...string) table {
	line := "| " + strings.Join(cells, " | ") + " |\n"
	if len(t) == 0 {
		line += "|---" + strings.Repeat("|--:", len(cells)-1) + "|\n"
	}
	return append(t, line)
}

func (t table) String() string { return strings.Join(t, "") }

// views are the pages whose first view is weighed and timed.
var views = []string{
	"/", "/beat", "/schedules", "/schedules/well", "/schedules/well?edit=true", "/new-schedule", "/tasks", "/tasks/dead", "/dead", "/enqueue", "/instances", "/events", "/audit", "/login",
}

// wire counts what comes over the wire.
type wire struct {
	mu     sync.Mutex
	kinds  map[network.RequestID]string
	bytes  map[string]int
	hosts  map[string]bool
	number int
}

func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kinds, w.bytes, w.hosts, w.number = map[network.RequestID]string{}, map[string]int{}, map[string]bool{}, 0
}

func (w *wire) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		w.kinds[e.RequestID] = string(e.Type)
		if u, err := url.Parse(e.Request.URL); err == nil && u.Scheme != "data" {
			w.hosts[u.Host] = true
		}
	case *network.EventLoadingFinished:
		w.bytes[w.kinds[e.RequestID]] += int(e.EncodedDataLength)
		w.number++
	}
}

func (w *wire) read() (bytes map[string]int, hosts []string, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := 0
	for _, n := range w.bytes {
		sum += n
	}
	w.bytes["all"] = sum
	for host := range w.hosts {
		hosts = append(hosts, host)
	}
	return w.bytes, hosts, w.number
}

// forgets has the browser keep nothing, so that each page is opened as if for the first time.
func (b *tab) forgets() {
	b.Helper()
	sends(b, network.Enable, network.EnableParams{})
	sends(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
}

func TestFirstView_isLightAndAsksThisHostAlone(t *testing.T) {
	t.Parallel()
	f := newFilled(t)
	b := f.comes()
	w := &wire{}
	w.reset()
	if err := chromedp.Listen(b.ctx, w.hear); err != nil {
		t.Fatal(err)
	}
	b.forgets()
	table := table{}.row("page", "requests", "document", "scripts", "style", "API", "in all, KiB")
	for _, path := range views {
		b.do(chromedp.Navigate("about:blank")) // so that the page before asks nothing more
		w.reset()
		b.open(path)
		n, hosts, requests := w.read()
		kib := func(kind string) string { return fmt.Sprintf("%.1f", float64(n[kind])/1024) }
		table = table.row(path, fmt.Sprint(requests), kib("Document"), kib("Script"), kib("Stylesheet"), kib("Fetch"), kib("all"))
		if n["all"] > mostWeight || n["Document"] == 0 || n["Script"] == 0 || n["Stylesheet"] == 0 {
			t.Errorf("%s: its first view loads %d bytes, want at most %d: %v", path, n["all"], mostWeight, n)
		}
		if late := value[[]string](b, lateModules); len(late) > 0 {
			t.Errorf("%s: its head does not name the modules %v, so they come late", path, late)
		}
		if !slices.Equal(hosts, []string{f.front.Addr().String()}) {
			t.Errorf("%s asks other hosts: %v", path, hosts)
		}
	}
	t.Logf("the first view of each page, over the wire:\n%s", table)
}

// lateModules are those that a page loaded and its head does not name.
const lateModules = `performance.getEntriesByType('resource').map((x) => x.name).filter((x) => x.endsWith('.js'))
	.filter((x) => ![...document.querySelectorAll('head > link[rel=modulepreload], head > script')].some((e) => (e.href || e.src) === x))`

// watchView marks the moment in which a page has shown each of its views for the first time, and they are painted. A page without views
// is there when its scripts have run.
const watchView = `addEventListener('DOMContentLoaded', () => {
	let shown = false;
	const look = () => {
		if (shown || [...document.querySelectorAll('main [data-state=loading]')].some((e) => e.checkVisibility())) return;
		shown = true;
		requestAnimationFrame(() => setTimeout(() => performance.mark('shown')));
	};
	new MutationObserver(look).observe(document, { subtree: true, attributes: true, attributeFilter: ['data-state'] });
	look();
})`

// With ONBEAT_TEST_VIEW=1, it prints how long each page takes from the start of the navigation until it is shown.
func TestFirstView_times(t *testing.T) {
	if os.Getenv("ONBEAT_TEST_VIEW") == "" {
		t.Skip("a measurement: set ONBEAT_TEST_VIEW=1")
	}
	const times = 10
	b := newFilled(t).comes()
	b.forgets()
	sends(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watchView})
	table := table{}.row("page", "p50 ms", "worst ms")
	for _, path := range views {
		var took []time.Duration
		for range times {
			b.open(path)
			b.waits(`performance.getEntriesByName('shown').length`)
			took = append(took, time.Duration(value[float64](b, `performance.getEntriesByName('shown')[0].startTime`)*float64(time.Millisecond)))
		}
		slices.Sort(took)
		table = table.row(path, fmt.Sprint(rig.Quantile(took, .5).Milliseconds()), fmt.Sprint(took[len(took)-1].Milliseconds()))
	}
	t.Logf("the first view of each page, %d times without a cache:\n%s", times, table)
}
