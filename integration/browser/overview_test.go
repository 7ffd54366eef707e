package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// The overview says what needs attention. Without Redis it says so and keeps what it showed, as each page does; when Redis is back, it goes on.
func TestOverview(t *testing.T) {
	t.Parallel()
	w, srv := privateWorld(t)
	w.serve("v1", head, w.Beat("orders.sync", 200*time.Millisecond, "missed: all"))
	w.adds(`{"type":"sleep","id":"nap","max_attempts":1,"payload":{"for":"1ms","fail":1}}`)
	w.comesTo("dead", "nap")

	b := w.browse()
	schedules := b.another()
	b.open("/")
	b.shows("#attention", "1 task failed for good")
	b.shows("#figures [data-field=dead]", "1")
	b.shows("#figures [data-field=schedules], #now [data-field=schedules]", "1")
	schedules.open("/schedules")
	open := []*tab{b, schedules}

	srv.Pause()
	for _, page := range open {
		page.allow(`status of (429|50[0-9])`) // 429 if many requests of a sender wait for Redis
		page.waits(`document.querySelector('[data-state=stale] > .state')?.textContent.includes('As of')`)
	}
	schedules.shows("#list tbody tr", "orders.sync")
	schedules.shows("#banner", "Redis has not answered")
	schedules.waits(`document.querySelector('#live').dataset.state === 'away'`)
	schedules.shows("[data-nav=dead] b", "1")
	srv.Resume()
	for _, page := range open {
		page.waits(`!document.querySelector('[data-state=stale], [data-state=failed], [data-state=loading]')`)
		page.waits(`document.querySelector('#live').dataset.state === 'live'`)
	}
	w.Grow(5, "the beat does not go on")
	w.adds(`{"type":"sleep","id":"late","max_attempts":1,"timeout":"50ms","payload":{"for":"1h"}}`)
	b.waits(`document.querySelectorAll("#attention a[href='/dead']").length === 2`) // a line for each cause
	b.click("#attention a[href='/dead']")
	b.comes("/dead")
}

// The overview of a namespace that is split says what lies in each partition, where, and who leads it.
func TestOverview_ofPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", "partitions: 3\n"+head, w.Beat("orders.sync", 200*time.Millisecond))
	w.adds(`{"type":"sleep","id":"nap","payload":{"for":"10m"}}`, `{"type":"echo","id":"tomorrow","in":"24h"}`)
	b := w.browse()
	b.open("/")
	b.shows("#partitions [data-field=balance]", "3 partitions on 1 node.")
	b.shows("#partitions [data-field=balance]", "0 to 1 schedules")
	b.waits(`document.querySelectorAll('#partitions tbody tr').length === 3`)
	b.waits(`[...document.querySelectorAll('#partitions [data-field=leader]')].every((e) => e.textContent && e.textContent !== 'none')`)
	b.waits(`[...document.querySelectorAll('#partitions [data-field=running]')].filter((e) => e.textContent >= '1').length >= 1`)
	b.waits(`[...document.querySelectorAll('#partitions [data-field=node]')].every((e) => /:\d+$/.test(e.textContent))`)

	// An instance that takes the lead of several partitions has one term.
	b.allow(gone)
	w.serve("v2", "partitions: 3\n"+head, w.Beat("orders.sync", 200*time.Millisecond))
	testredis.Eventually(w, patience, func() bool { return len(w.incidents("leader")) >= 6 }, "the release does not take the lead")
	b.open("/instances")
	b.waits(`document.querySelectorAll('#terms tbody tr').length === 2`)
	b.says("#terms tbody tr:first-child", "v2", "leads now", "3 partitions")
	b.says("#terms tbody tr:last-child", "v1", "3 partitions")
	if strings.Contains(b.text("#terms tbody tr:last-child"), "leads now") {
		t.Error("two instances lead")
	}
}

// Each list, and the beat, names a partition that did not answer. The beat of one that is back is whole.
func TestPartitions_thatDoNotAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("orders.sync", 200*time.Millisecond))
	w.Grow(15, "the beat does not begin")
	shown := w.Of("orders.sync")[14].Slot
	b := w.browse()
	b.changes(`(url, answer) => window.back ? answer : {
		...answer, ...(url.includes('schedule=orders') && (window.asked = true) && { schedules: [] }), could_not_ask: [{ source: 'partition 2', error: 'it is away' }],
	}`)
	lacks := func(view string) {
		t.Helper()
		b.waits(`document.querySelector(` + quote(view+" > .state") + `)?.textContent.trim().startsWith('Could not ask partition 2')`)
	}
	for path, view := range map[string]string{
		"/schedules": "#list", "/tasks": "#list", "/dead": "#groups", "/events": "#list", "/events?from=2024-01-01T00:00:00Z": "#list", "/instances": "#terms", "/": "#beat",
	} {
		b.open(path)
		lacks(view)
	}
	b.waits(fmt.Sprintf("Date.now() > %d", shown.UnixMilli()+5000)) // the picture ends well before now, so only what it lacks is asked for again
	b.open("/beat?view=table&zoom=2&to=" + shown.UTC().Format(time.RFC3339Nano))
	b.waits(`window.asked`)
	lacks("#beat")
	b.eval(`window.back = true`)
	b.shows("#table tbody", "orders.sync")
	b.waits(`!document.querySelector('#beat > .state')`)
}
