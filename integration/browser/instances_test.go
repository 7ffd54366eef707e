package browser

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/testredis"
)

// short is how a page ends the name of an instance.
func short(id string) string { return "…" + id[len(id)-6:] }

// The leader resigns, an instance drains, and all pause: by the page, and not one slot is missed.
func TestInstances(t *testing.T) {
	t.Parallel()
	const every = 250 * time.Millisecond
	w := newWorld(t)
	var crew []*rig.Process
	for range 3 {
		crew = append(crew, w.serve("v1", head, w.Beat("a", every, "missed: all")))
	}
	w.Grow(8, "nothing runs")
	terms := func() []incident { return w.incidents("leader") }
	first := terms()
	leader := first[len(first)-1].Fields
	b := w.browse()
	b.allow(`net::ERR_|status of 502`) // of connections to the one that drains
	b.open("/instances")
	b.shows("#leader", short(leader["instance"])+" leads")
	b.shows("#releases", "3 of 3 instances ready")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	b.shows("#leader strong", host+" "+short(leader["instance"]))
	b.shows("#releases tbody tr:has([aria-label='Copy the ID "+leader["instance"]+"'])", host)
	b.click("#releases [aria-label='Copy the ID " + leader["instance"] + "']")
	b.shows("#toasts", "Copied the ID.")

	// Resign: left first, then agreed to.
	resign := fmt.Sprintf("#releases [aria-label^='Resign '][aria-label$='%s']", short(leader["instance"]))
	b.click(resign)
	b.leaves()
	if now := terms(); len(now) != len(first) {
		t.Errorf("the dialog was left, and %v leads", now[len(now)-1].Fields)
	}
	b.click(resign)
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return len(terms()) == len(first)+1 }, "no other leads")
	next := terms()[len(first)].Fields
	before, _ := strconv.Atoi(leader["epoch"])
	if after, _ := strconv.Atoi(next["epoch"]); after <= before || next["instance"] == leader["instance"] {
		t.Errorf("after %v leads %v", leader, next)
	}
	b.shows("#leader", short(next["instance"])+" leads")
	b.shows("#terms tbody tr:first-child", short(next["instance"]))

	// Drain: its process ends as it should, and the others go on.
	i := slices.IndexFunc(crew, func(p *rig.Process) bool { return p.Instance() == leader["instance"] })
	b.click(fmt.Sprintf("#releases [aria-label^='Drain '][aria-label$='%s']", short(leader["instance"])))
	b.agrees()
	crew[i].WantExit()
	crew = slices.Delete(crew, i, i+1)
	b.shows("#releases", "2 of 2 instances ready")
	w.Grow(8, "the others do not go on")

	// A pause of all, and its end.
	b.click("#all button")
	b.fills("dialog[open] [name=for]", "11m")
	b.allow(`status of 400 .*/v1/instances/pause`)
	b.click("dialog[open] [data-act=ok]")
	b.shows("dialog[open] .error", "10m")
	b.fills("dialog[open] [name=for]", "30s")
	b.agrees()
	b.shows("#leader", "Paused until")
	time.Sleep(4 * every) // a pause in which slots come
	b.shows("#all button", "Resume")
	b.click("#all button")
	w.Grow(12, "nothing runs after the pause")
	paused, resumed := w.incidents("claims paused"), w.incidents("claims resumed")
	if len(paused) != 1 || len(resumed) != 1 {
		t.Fatalf("%d pauses began, %d were ended", len(paused), len(resumed))
	}
	for _, a := range w.Of("a") {
		if a.Slot.After(paused[0].At) && a.At.Before(resumed[0].At) {
			t.Errorf("%s ran in the pause, %s before its end", a.ID, resumed[0].At.Sub(a.At))
		}
	}

	ended := time.Now()
	for _, p := range crew {
		p.Stop()
	}
	w.WantWhole("the beats", w.Judge(every, ended.Add(-4*every), "a"))
}

// Events come to an open page as they happen, filtered. A tab that freezes, as those in the background of a phone do, leaves the stream to another,
// and has lost nothing when it is back.
func TestEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("a", time.Second))
	b := w.browse()
	b.open("/events")
	b.shows("#live", "live")
	other := b.another()
	other.open("/events")
	other.shows("#live", "live")
	other.fills("[name=kind]", "schedule paused")
	other.waits(`location.search === '?kind=schedule+paused'`)
	other.shows("#list", "None like that")
	other.eval(`window.stays = true`)
	w.Must("schedules", "pause", "a")
	other.shows(".log", "a was paused")
	if !value[bool](other, `window.stays`) {
		t.Error("the page of the events was loaded anew")
	}

	// Schedules that are declared at once are one line that opens, and a name is a link.
	many := make([]string, 12)
	for i := range many {
		many[i] = w.Beat(fmt.Sprintf("many-%02d", i), time.Hour)
	}
	w.serve("v2", head, append(many, w.Beat("a", time.Second))...)
	third := b.another()
	for _, page := range []*tab{b, other, third} {
		page.allow(gone) // v2 goes first
	}
	third.open("/events")
	third.shows(".log > li:has(details) .what", "12 schedules were made")
	third.click(".log > li:has(details) summary")
	third.shows(".log details .log li:nth-child(12)", "was made")
	third.click(".log details .log a[href='/schedules/many-05']")
	third.comes("/schedules/many-05")

	b.eval(`document.addEventListener('freeze', () => localStorage.setItem('frozen', 'yes'))`)
	sends(b, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: "frozen"})
	other.waits(`localStorage.getItem('frozen')`)
	w.Must("schedules", "resume", "a")
	w.Must("schedules", "pause", "a")
	other.waits(`document.querySelectorAll('.log li').length === 2`)
	sends(b, page.SetWebLifecycleState, page.SetWebLifecycleStateParams{State: "active"})
	b.shows("#list", "schedule resumed")

	other.do(chromedp.Reload())
	other.comes("/events?kind=schedule+paused")
	other.waits(`document.querySelectorAll('.log li').length === 2 && document.querySelector('[name=kind]').value === 'schedule paused'`)
}

// The audit gives its verdict in words, of all schedules or of one.
func TestAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head, w.Beat("a", 250*time.Millisecond), "  - {name: bad, every: 1s, task: sleep, payload: {for: 1ms, fail: 1}, max_attempts: 1}\n")
	w.Grow(8, "nothing runs")
	testredis.Eventually(w, patience, func() bool { return len(w.list("--state", "dead")) > 1 }, "nothing fails")
	b := w.browse()
	b.open("/audit?since=1h&schedule=a")
	b.shows("#audit .verdict", "All is well")
	b.fills("[name=schedule]", "bad")
	b.click("#ask [type=submit]")
	b.shows("#audit .verdict", "Not well")
	b.shows("#wrong", "bad")
	b.shows("#audit tbody", "failing")
	b.comes("/audit?since=1h&schedule=bad")
}
