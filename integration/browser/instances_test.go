package browser

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/testredis"
)

// The leader resigns, an instance drains, and all pause: by the page, and not one slot is missed. Events come to an open page as they
// happen, and the audit says the verdict in words.
func TestInstances_resignAndDrainWithoutAMissedSlot(t *testing.T) {
	t.Parallel()
	const every = 250 * time.Millisecond
	w := newWorld(t)
	schedules := []string{
		w.Beat("a", every, "missed: all"), w.Beat("b", every, "missed: all"),
		"  - {name: bad, every: 1s, task: sleep, payload: {for: 1ms, fail: 1}, max_attempts: 1}\n",
	}
	var crew []*rig.Process
	for range 3 {
		crew = append(crew, w.serve("v1", head, schedules...))
	}
	w.Grow(8, "nothing runs")
	first := w.incidents("leader")
	leader := first[len(first)-1].Fields["instance"]

	b := w.sits()
	b.open("/instances")
	b.shows("#leader", leader+" leads")
	b.shows("#releases", "3 of 3 instances ready")
	others := b.another()
	others.looks(false, 1280, 800)
	others.open("/events")
	others.eval(`window.stays = true`)

	// Resign: left first, then agreed to.
	resign := fmt.Sprintf("#releases [aria-label='Resign %s']", leader)
	b.click(resign)
	b.leaves()
	if now := w.incidents("leader"); len(now) != len(first) {
		t.Errorf("the dialog was left, and %v leads", now[len(now)-1].Fields)
	}
	b.click(resign)
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return len(w.incidents("leader")) == len(first)+1 }, "no other leads")
	next := w.incidents("leader")[len(first)].Fields
	if before, after := number(first[len(first)-1].Fields["epoch"]), number(next["epoch"]); after <= before || next["instance"] == leader {
		t.Errorf("after %s of epoch %d leads %s of epoch %d", leader, before, next["instance"], after)
	}
	b.shows("#leader", next["instance"]+" leads")
	b.shows("#releases", "resigned")
	b.shows("#terms tbody tr:first-child", next["instance"])
	others.shows(".log", leader+" of release v1 was asked to give up the lead")

	// Drain: its process ends as it should, and the others go on.
	for _, page := range []*tab{b, others} {
		page.allow(`net::ERR_`) // their connections end with it
	}
	for i, p := range crew {
		if p.Instance() == leader {
			crew = append(crew[:i:i], crew[i+1:]...)
			b.click(fmt.Sprintf("#releases [aria-label='Drain %s']", leader))
			b.agrees()
			p.WantExit()
			break
		}
	}
	b.shows("#releases", "2 of 2 instances ready")
	others.shows(".log", leader+" of release v1 left: a clean stop")
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
	others.shows(".log", "no instance begins a task")
	time.Sleep(6 * every) // a pause in which slots come
	b.shows("#all button", "Resume")
	b.click("#all button")
	others.shows(".log", "instances begin tasks again")
	w.Grow(20, "nothing runs after the pause")
	w.wantPaused("a", 4)

	// The events, filtered, and as they happen.
	others.fills("[name=kind]", "schedule paused")
	others.waits(`location.search === '?kind=schedule+paused'`)
	others.shows("#list", "None like that")
	w.Must("schedules", "pause", "bad")
	others.shows(".log", "bad was paused")
	others.waits(`document.querySelectorAll('.log li').length === 1`)
	if !value[bool](others, `window.stays === true`) {
		t.Error("the page of the events was loaded anew")
	}
	others.do(chromedp.Reload())
	others.comes("/events?kind=schedule+paused")
	others.shows(".log", "bad was paused")
	others.waits(`document.querySelectorAll('.log li').length === 1 && document.querySelector('[name=kind]').value === 'schedule paused'`)

	// The audit in words, as the command judges.
	b.open("/audit?since=1h&schedule=a")
	b.shows("#audit .verdict", "All is well")
	b.fills("[name=schedule]", "bad")
	b.click("#ask [type=submit]")
	b.shows("#audit .verdict", "Not well: 1 schedule of which no run succeeded")
	b.shows("#wrong", "bad")
	b.shows("#audit tbody", "failing")
	b.comes("/audit?since=1h&schedule=bad")

	ended := time.Now()
	for _, p := range crew {
		p.Stop()
	}
	w.WantWhole("the beats", w.Judge(every, ended.Add(-4*every), "a", "b"))
	for _, line := range said[struct{ Schedules []rig.AuditLine }](w, "audit", "a", "--since", "1h").Schedules {
		if line.Missed > 0 || line.Broken {
			t.Errorf("%+v", line)
		}
	}
}

// wantPaused fails unless slots of a schedule came in the one pause that there was, and ran after it.
func (w *world) wantPaused(schedule string, least int) {
	w.Helper()
	from, to := w.incidents("claims paused"), w.incidents("claims resumed")
	if len(from) != 1 || len(to) != 1 {
		w.Fatalf("%d pauses began, %d were ended", len(from), len(to))
	}
	came := 0
	for _, a := range w.Of(schedule) {
		if !a.Slot.After(from[0].At) || !a.Slot.Before(to[0].At) {
			continue
		}
		came++
		if a.At.Before(to[0].At) {
			w.Errorf("%s ran in the pause, %s before its end", a.ID, to[0].At.Sub(a.At))
		}
	}
	if came < least {
		w.Errorf("%d slots came in the pause", came)
	}
}

// number reads a number of an event.
func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
