package browser

import (
	"testing"
	"time"
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
}
