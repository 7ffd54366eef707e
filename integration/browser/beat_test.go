package browser

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// leads waits until the picture tells a screen reader that each of the newest releases led after the one before.
func leads(b *tab, releases ...string) {
	b.Helper()
	pattern := "of " + strings.Join(releases, " led .*of ") + " led .* until now"
	b.waits(fmt.Sprintf(`new RegExp(%s).test(document.querySelector('#lanes').ariaLabel)`, quote(pattern)))
}

// counted is a part of a fate that the table sums up: "3 on time".
var counted = regexp.MustCompile(`^(?:(\d+) )?([a-z ]+)$`)

// wantBeat fails unless each slot that the table shows of a schedule ran, with at most some of them late.
func wantBeat(b *tab, schedule string, late int) {
	b.Helper()
	ran := 0
	for _, row := range value[[][]string](b, `[...document.querySelectorAll('#table tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))`) {
		if row[0] != schedule {
			continue
		}
		for part := range strings.SplitSeq(row[2], ", ") {
			m := counted.FindStringSubmatch(part)
			n, _ := strconv.Atoi(cmp.Or(m[1], "1"))
			switch m[2] {
			case "on time":
				ran += n
			case "late":
				ran, late = ran+n, late-n
			case "pending", "changed":
			default:
				b.Errorf("%q", row)
			}
		}
	}
	if late < 0 || ran < 5 {
		b.Errorf("%s: %d slots ran, %d too many of them late", schedule, ran, -late)
	}
}

// gone matches the complaints of a browser when the instance that answers it goes.
const gone = `ERR_(EMPTY_RESPONSE|CONNECTION|SOCKET_NOT_CONNECTED|INCOMPLETE|ABORTED)|status of 502`

// An operator watches a deploy on a page that stays open: the new release takes the lead, the old one goes, the new one dies, and
// another takes over. No slot is lost.
func TestBeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	beats := []string{
		"  - {name: a-yearly, cron: '0 2 29 2 *', task: echo}\n",
		w.Beat("orders.sync", 200*time.Millisecond, "missed: all", "max_attempts: 3"), w.Beat("prices.refresh", time.Second, "missed: all", "max_attempts: 3"),
	}
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
	b.click("#as-table")
	b.shows("#table td", "v2")
	wantBeat(b, "orders.sync", 3) // a busy machine makes some late
	wantBeat(b, "prices.refresh", 3)

	b.click("#as-table") // the picture is drawn again
	w.serve("v1", head, beats...)
	next.Kill()
	leads(b, "v2", "v1")
	w.Grow(20, "the beat stops with its leader")
	b.click("#as-table")
	b.shows("#table td", "v1")
	wantBeat(b, "orders.sync", 15) // those that were due while no instance led are late

	// By the keys: a row that has no slot in this time says so.
	b.click("#as-table")
	b.eval(`document.querySelector('#rows').focus()`)
	b.keys(kb.ArrowLeft)
	b.shows("#story", "a-yearly: no slot in this time.")
	b.keys(kb.ArrowDown)
	b.shows("#story h2", "orders.sync")
	b.keys(kb.Escape)
	b.shows("#story", "Choose a slot")

	// On a phone the lanes are as wide as the rows, and an address with an odd part shows the beat without that part.
	b.looks(false, 360, 740)
	b.waits(`document.querySelector('#lanes').clientWidth > 300`)
	for _, view := range []string{"zoom=constructor", "zoom=-60", "to=%2B275760-09-12"} {
		b.open("/beat?" + view)
		b.shows("#names", "orders.sync")
	}
}
