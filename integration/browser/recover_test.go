package browser

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// failing has the first calls of a path fail, as while Redis is away.
const failing = `{
	const fetches = window.fetch;
	let left = %d;
	window.fetch = (path, ...more) => (path === %q && left-- > 0
		? Promise.resolve(new Response('{"detail":"redis is away"}', { status: 503 })) : fetches(path, ...more));
}`

// failsAt has the first n calls of a path fail in each page that is opened.
func (b *tab) failsAt(path string, n int) {
	b.Helper()
	sends(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf(failing, n, path)})
}

// A page of a schedule whose first call fails comes whole when a later one is answered.
func TestSchedule_comesWholeWhenItsFirstCallFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("a", time.Second))
	w.Grow(2, "it never runs")
	b := w.sits()
	b.failsAt("/v1/schedules/a", 1)
	b.do(chromedp.Navigate(b.base + "/schedules/a"))
	b.shows("#schedule .lead", "Every 1 s")
	b.settled()
	b.shows("#runs tbody", "done")
	b.shows("#history ol", "as it is now")
	b.waits(`document.querySelector('#strip canvas')`)
}

// What the head of a schedule says goes on with its runs.
func TestSchedule_tellsOfItsNewestRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, "  - {name: a, every: 1s, task: sleep, payload: {for: 1ms}}\n")
	b := w.sits()
	b.open("/schedules/a")
	at := value[int](b, `Number(document.querySelector('[data-field=facts]').textContent.match(/Slots so far\s*(\d+)/)[1])`)
	b.waits(fmt.Sprintf(`Number(document.querySelector('[data-field=facts]').textContent.match(/Slots so far\s*(\d+)/)[1]) >= %d`, at+4))
}

// A view that failed while its tab was in the background is asked for anew when somebody looks at it.
func TestView_thatFailedInTheBackgroundRecovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	b := w.sits()
	b.failsAt("/v1/tasks?limit=50", 1)
	sends(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
		var away = true;
		Object.defineProperty(Document.prototype, 'hidden', { get: () => away });`})
	b.do(chromedp.Navigate(b.base + "/tasks"))
	b.shows("#list", "redis is away")
	time.Sleep(4 * time.Second) // a view that is seen has tried again by now
	b.eval(`away = false, void document.dispatchEvent(new Event('visibilitychange'))`)
	b.shows("#list", "There are no tasks now")
}

// A tab that freezes, as those in the background of a phone do, leaves the stream of events to one that does not.
func TestLive_isLeftToAnotherByATabThatFreezes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("a", time.Second))
	b := w.sits()
	b.open("/events")
	b.shows("#live", "live")
	other := b.another()
	other.looks(false, 1280, 800)
	other.open("/events")
	other.shows("#live", "live")
	if status := other.fetches("POST", "/v1/schedules/a/pause", ""); status != http.StatusOK {
		t.Fatal(status)
	}
	other.shows("#list", "schedule paused")
	b.eval(`document.addEventListener('freeze', () => localStorage.setItem('frozen', 'yes'))`)
	sends(b, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: "frozen"})
	other.waits(`localStorage.getItem('frozen')`)
	if status := other.fetches("POST", "/v1/schedules/a/resume", ""); status != http.StatusOK {
		t.Fatal(status)
	}
	other.shows("#list", "schedule resumed")
	sends(b, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: "active"})
	b.shows("#list", "schedule resumed")
}

// A tab shows what others do even while events come without a pause, as those of an errand do.
func TestErrands_areShownWhileEventsComeWithoutAPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	b := w.sits()
	b.open("/tasks")
	b.eval(`void setInterval(() => new BroadcastChannel('onbeat events').postMessage({ event: { id: '', event: 'tasks changed', fields: {} } }), 250)`)
	w.adds(`{"type":"mail","id":"a","in":"1h"}`)
	if status := b.fetches("POST", "/v1/errands", `{"action":"cancel","filter":{"type":"mail"}}`); status != http.StatusAccepted {
		t.Fatal(status)
	}
	b.shows("#errands", "Cancelling all")
}

// When a tab takes the stream over, it learns of what happened while nobody had it, also if no event had come before.
func TestLive_losesNothingWhenAnotherTabTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("a", time.Second))
	b := w.sits()
	b.open("/events")
	b.shows("#live", "live")
	between := b.another()
	for _, x := range []*tab{b, between} {
		x.allow(`status of 404 .*favicon`) // what is no page has no icon
	}
	between.do(chromedp.Navigate(between.base + "/v1/me"))
	between.eval(`void navigator.locks.request('onbeat events', () => new Promise((end) => (window.end = end)))`)
	heir := b.another()
	heir.looks(false, 1280, 800)
	heir.open("/events")
	heir.shows("#live", "live")
	b.do(chromedp.Navigate(b.base + "/v1/me"))
	between.waits(`window.end`)
	if status := between.fetches("POST", "/v1/schedules/a/pause", ""); status != http.StatusOK {
		t.Fatal(status)
	}
	between.eval(`end()`)
	heir.shows("#list", "schedule paused")
}
