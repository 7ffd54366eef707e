package browser

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// row is a line of the beat as a table.
type row struct{ Schedule, Slot, Fate, Began, Lag, Attempt, Instance, Release, Why string }

// rows reads the beat as a table, which has what the picture draws.
func rows(b *tab) (list []row) {
	b.Helper()
	for _, c := range value[[][]string](b, `[...document.querySelectorAll('#table tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))`) {
		list = append(list, row{c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8]})
	}
	return list
}

// lead is who led, as the picture says it to a screen reader.
func lead(b *tab) []string {
	b.Helper()
	_, text, _ := strings.Cut(value[string](b, `document.querySelector('#lanes').ariaLabel`), ": ")
	return strings.Split(text, "; ")
}

// leads waits until the picture says of the newest releases that each led after the one before.
func leads(b *tab, releases ...string) {
	b.Helper()
	pattern := "of " + strings.Join(releases, " led .*of ") + " led .* until now"
	b.waits(fmt.Sprintf(`new RegExp(%s).test(document.querySelector('#lanes').ariaLabel)`, quote(pattern)))
}

// counted is a part of a fate that the table sums up: "3 on time".
var counted = regexp.MustCompile(`^(?:(\d+) )?([a-z ]+)$`)

// wantBeat fails unless each slot that the table shows of a schedule ran, with at most some of them late. It returns how many ran
// under each release; sums of slots do not say it.
func wantBeat(b *tab, schedule string, late int) (releases map[string]int) {
	b.Helper()
	releases = map[string]int{}
	ran := 0
	for _, r := range rows(b) {
		if r.Schedule != schedule {
			continue
		}
		for part := range strings.SplitSeq(r.Fate, ", ") {
			m := counted.FindStringSubmatch(part)
			n, _ := strconv.Atoi(cmp.Or(m[1], "1"))
			switch m[2] {
			case "on time":
				ran += n
			case "late":
				ran, late = ran+n, late-n
			case "pending", "changed":
			default:
				b.Errorf("%s %s: %s %s", schedule, r.Slot, r.Fate, r.Why)
			}
		}
		releases[r.Release]++
	}
	if late < 0 || ran < 5 {
		b.Errorf("%s: %d slots ran, %d too many of them late", schedule, ran, -late)
	}
	return releases
}

// gone is what a browser says when the instance goes that it has connections to.
const gone = `ERR_(EMPTY_RESPONSE|CONNECTION|SOCKET_NOT_CONNECTED|INCOMPLETE|ABORTED)`

// What the operator watches during a deploy: the new release comes, takes the lead, and the old one goes, while the page is open
// and the instance that served it is the one that goes.
func TestBeat_showsARollingUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	beats := []string{w.Beat("orders.sync", 200*time.Millisecond), w.Beat("prices.refresh", time.Second)}
	old := w.serve("v1", head, beats...)
	b := w.browse()
	b.allow(gone)
	b.open("/beat?zoom=1m")
	leads(b, "v1")
	w.Grow(20, "the beat does not begin")
	next := w.serve("v2", head, beats...)
	leads(b, "v1", "v2")
	old.Stop()
	w.Grow(20, "the beat stops with the old release")
	b.waits(`document.querySelector('#live').dataset.state === 'live'`)

	if list := lead(b); len(list) != 2 {
		t.Errorf("who led: %q", list)
	}
	b.click("#as-table")
	b.shows("#table td", "v2")
	wantBeat(b, "orders.sync", 0)
	if got := wantBeat(b, "prices.refresh", 0); got["v1"] == 0 || got["v2"] == 0 {
		t.Errorf("slots of prices.refresh by release: %v", got)
	}
	b.open("/instances")
	b.shows("#leader", "v2")
	b.shows("#terms tbody tr", "v1")
	if b.has(`#releases [data-release=v1]`) {
		t.Error("v1 is still among the instances")
	}
	ended := time.Now()
	next.Stop()
	w.Steady(200*time.Millisecond, ended.Add(-time.Second), "orders.sync")
}

// A leader that dies is marked as lost, and another leads a moment later: the page says both, and no slot was lost.
func TestBeat_showsACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	beats := []string{w.Beat("orders.sync", 200*time.Millisecond, "missed: all", "max_attempts: 3"), w.Beat("prices.refresh", time.Second, "missed: all", "max_attempts: 3")}
	w.serve("v1", head, beats...)
	leader := w.serve("v2", head, beats...)
	b := w.browse()
	b.allow(gone)
	b.open("/beat?zoom=1m")
	leads(b, "v2")
	w.Grow(20, "the beat does not begin")
	leader.Kill()
	leads(b, "v2", "v1")
	w.Grow(20, "the beat stops with its leader")
	b.waits(`document.querySelector('#live').dataset.state === 'live'`)
	b.click("#as-table")
	b.shows("#table td", "v1")
	wantBeat(b, "orders.sync", 10) // those that were due while nobody led are late
	b.open("/events")
	b.shows("#list tbody tr, #list li", "v2")
	b.open("/")
	b.waits(`document.querySelector('#live').dataset.state === 'live'`)
}

// refusals are what the API answers while Redis is away: 429 if many requests of a sender wait for it.
const refusals = `status of (429|50[0-9])`

// Without Redis, each page says so and keeps what it showed. When Redis is back, it goes on by itself.
func TestPages_sayThatRedisIsAwayAndGoOn(t *testing.T) {
	t.Parallel()
	w, srv := privateWorld(t)
	w.serve("v1", head, w.Beat("orders.sync", 200*time.Millisecond, "missed: all"))
	b := w.browse()
	b.allow(refusals)
	schedules := b.another()
	schedules.allow(refusals)
	b.open("/beat?zoom=1m")
	w.Grow(10, "the beat does not begin")
	schedules.open("/schedules")

	srv.Pause()
	for _, page := range []*tab{b, schedules} {
		page.waits(`document.querySelector('[data-state=stale]')`)
		page.waits(`document.querySelector('[data-state=stale] > .state')?.textContent.includes('As of')`)
	}
	schedules.shows("#list tbody tr", "orders.sync")
	fresh := b.another()
	fresh.allow(refusals)
	fresh.do(chromedp.Navigate(fresh.base + "/tasks"))
	fresh.shows(".state", "Redis")

	srv.Resume()
	for _, page := range []*tab{b, schedules, fresh} {
		page.waits(`!document.querySelector('[data-state=stale], [data-state=failed], [data-state=loading]')`)
		page.waits(`document.querySelector('#live').dataset.state === 'live'`)
	}
	w.Grow(10, "the beat does not go on")
}

// Who reads the beat by the keys comes past a schedule that has no slot in this time, and is told that it has none.
func TestBeat_keysPassARowWithoutSlots(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	never := func(name string) string { return "  - {name: " + name + ", cron: '0 2 29 2 *', task: echo}\n" }
	w.serve("v1", head, never("a-yearly"), w.Beat("b-often", 500*time.Millisecond), never("c-yearly"), w.Beat("d-often", 500*time.Millisecond))
	b := w.browse()
	b.open("/beat?zoom=1m")
	w.Grow(4, "the beat does not begin")
	b.waits(`document.querySelectorAll('#names *').length >= 4`)
	b.eval(`document.querySelector('#rows').focus()`)
	b.keys(kb.ArrowLeft)
	b.shows("#story", "a-yearly: no slot in this time.")
	for _, want := range []string{"b-often", "c-yearly: no slot in this time.", "d-often"} {
		b.keys(kb.ArrowDown)
		b.shows("#story", want)
	}
	b.keys(kb.ArrowUp + kb.ArrowUp)
	b.shows("#story h2", "b-often")
	b.keys(kb.Escape)
	b.shows("#story", "Choose a slot")

	b.open("/schedules/a-yearly") // which has nothing to show in two of its parts
	b.shows("#runs > .state", "No run of it is known.")
	if !value[bool](b, `document.querySelector('#runs > .state').previousElementSibling?.matches('h2, .head') ?? false`) {
		t.Error("what says that there are no runs comes before the heading of the runs")
	}
}

// On a phone the instances and the lead are drawn too, as wide as the rows.
func TestBeat_showsTheLanesOnAPhone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("orders.sync", time.Second))
	b := w.sits()
	b.looks(false, 360, 740)
	b.open("/beat?zoom=1m")
	leads(b, "v1")
	b.waits(`document.querySelector('#lanes').clientWidth > 300`)
	b.open("/schedules/orders.sync")
	b.waits(`document.querySelector('#strip canvas')?.clientWidth > 200`)
}
