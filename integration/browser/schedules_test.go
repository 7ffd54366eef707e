package browser

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/testredis"
)

// rule is a schedule, as the command shows it.
type rule struct {
	Name, Task, Every, Queue, Timeout string
	Paused                            bool
	Payload                           struct{ URL string }
	Upcoming                          []struct{ Slot time.Time }
}

func (w *world) rule(name string) rule {
	w.Helper()
	return said[rule](w, "schedules", "show", name)
}

// slots are the times that an element lists.
func (b *tab) slots(root string) (list []time.Time) {
	b.Helper()
	b.waits(`document.querySelectorAll(` + quote(root+" .slots time") + `).length === 5`)
	for _, text := range value[[]string](b, `[...document.querySelectorAll(`+quote(root+" .slots time")+`)].map((e) => e.dateTime)`) {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, at)
	}
	return list
}

// A schedule is made by the form, paused, run by hand, changed while another changes it too, taken back, backfilled, deleted and restored. What
// will happen is shown before it does, and what is left does not.
func TestSchedules_areMadeChangedAndTakenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	b := w.sits()
	start := time.Now().UTC().Truncate(time.Minute).Add(-90 * time.Minute).Format(time.RFC3339) // its slots are half an hour away

	// It is made: refused first, then with its slots shown before.
	b.open("/schedules")
	b.shows("#list", "No schedules yet.")
	b.click("a[href='/new-schedule']")
	b.comes("/new-schedule")
	b.allow(`status of 400 .*/v1/(preview|schedules)`)
	b.fills("#every", "often")
	b.shows("#error-every", "not a duration")
	b.fills("#every", "1h")
	b.waits(`!document.querySelector('#error-every')`)
	b.fills("#start", start)
	b.fills("#payload", w.Payload("hand"))
	b.fills("#task", "http")
	b.click("#definition [type=submit]")
	b.shows("#error-name-of", "")
	b.focused("#name-of[aria-invalid=true]")
	b.keys("hand")
	b.shows(".ahead", "Every 1 h")
	b.waits(`document.querySelector('.ahead .slots time')?.dateTime.endsWith(':00.000Z')`) // from then on
	ahead := b.slots(".ahead")
	b.click("#definition [type=submit]")
	b.shows("dialog[open]", "Make hand?")
	if shown := b.slots("dialog[open]"); !slices.EqualFunc(shown, ahead, time.Time.Equal) {
		t.Errorf("the form shows the slots %s, the dialog %s", ahead, shown)
	}
	if code, _, _ := w.Try("schedules", "show", "hand"); code == 0 {
		t.Error("it is made before one has agreed")
	}
	b.agrees()
	b.comes("/schedules/hand")
	made := w.rule("hand")
	if made.Every != "1h" || made.Task != "http" || made.Payload.URL != w.Rec.URL("hand") || !made.Upcoming[0].Slot.Equal(ahead[0]) || !made.Upcoming[4].Slot.Equal(ahead[4]) {
		t.Errorf("%+v, and the form said %s", made, ahead)
	}

	// Paused, resumed, and run by hand; paused on the list too.
	b.click("#act [data-act=pause]")
	b.shows(".head [data-field=state]", "paused")
	if !w.rule("hand").Paused {
		t.Error("it is not paused")
	}
	b.waits(`document.querySelector('#act').contains(document.activeElement)`) // though the button is another now
	b.click("#act [data-act=resume]")
	b.shows(".head [data-field=state]", "on")
	if w.rule("hand").Paused {
		t.Error("it is not resumed")
	}
	b.click("#act [data-act=trigger]")
	b.leaves()
	b.click("#act [data-act=trigger]")
	b.agrees()
	b.shows("#toasts a", "hand!")
	if a := w.Arrived(b.text("#toasts a")); a.Schedule != "hand" {
		t.Errorf("%+v", a)
	}
	if runs := w.Of("hand"); len(runs) != 1 {
		t.Errorf("it ran %d times", len(runs))
	}
	b.shows("#runs tbody", "by hand")
	b.click("a[data-nav=schedules]")
	b.comes("/schedules")
	b.click("#list [aria-label='pause hand']")
	b.shows("#list [data-field=state]", "paused")
	b.click("#list [aria-label='resume hand']")
	testredis.Eventually(w, patience, func() bool { return !w.rule("hand").Paused }, "it is not resumed")
	b.click("#list a[href='/schedules/hand']")
	b.comes("/schedules/hand")

	// Changed: what changes is shown first.
	b.click("#act [data-act=edit]")
	b.comes("/schedules/hand?edit=true")
	b.back() // out of the form
	b.comes("/schedules/hand")
	b.waits(`!document.querySelector('#edit').checkVisibility()`)
	b.click("#act [data-act=edit]")
	b.fills("#every", "2h")
	b.keys(kb.Enter)
	b.says("dialog[open] .diff", "every", "1h", "2h")
	b.leaves()
	if r := w.rule("hand"); r.Every != "1h" {
		t.Errorf("the dialog was left, and it runs every %s", r.Every)
	}
	b.click("#definition [type=submit]")
	b.shows("dialog[open] .diff", "2h")
	ahead = b.slots("dialog[open]")
	b.agrees()
	b.comes("/schedules/hand")
	b.focused("#act [data-act=edit]")
	if r := w.rule("hand"); r.Every != "2h" || !r.Upcoming[0].Slot.Equal(ahead[0]) {
		t.Errorf("%+v, and the dialog said %s", r, ahead)
	}

	// Two change it at once: neither change is lost.
	b.click("#act [data-act=edit]")
	b.eval(`for (const d of document.querySelectorAll('#definition details')) d.open = true`)
	b.fills("#queue", "slow")
	b.click("#definition [type=submit]")
	b.says("dialog[open] .diff", "queue", "slow")
	w.Must("schedules", "apply", w.File("hand.yaml", fmt.Sprintf("[{name: hand, every: 2h, start: %q, task: http, timeout: 5m, payload: {url: %q}}]", start, w.Rec.URL("hand"))))
	b.allow(`status of 412 .*/v1/schedules/hand`)
	b.click("dialog[open] [data-act=ok]")
	b.shows("dialog[open] .error", "Somebody changed it meanwhile")
	b.says("dialog[open]", "timeout", "5m", "Your change would then be", "slow")
	if r := w.rule("hand"); r.Queue == "slow" || r.Timeout != "5m" {
		t.Errorf("it was refused: %+v", r)
	}
	b.agrees()
	testredis.Eventually(w, patience, func() bool { r := w.rule("hand"); return r.Queue == "slow" && r.Timeout == "5m" }, "one of the changes is lost")

	// Back to what it said at first.
	b.comes("/schedules/hand")
	b.waits(`document.querySelectorAll('#history li').length === 4`)
	b.says("#history li:first-child", "as it is now", "slow")
	b.shows("#history li:last-child", "Made")
	b.click("#history li:last-child [data-act=revert]")
	b.says("dialog[open] .diff", "every", "2h", "1h", "queue", "timeout")
	b.agrees()
	b.waits(`document.querySelectorAll('#history li').length === 5`)
	b.shows("#history li:first-child", "Reverted, as it is now")
	if r := w.rule("hand"); r.Every != "1h" || r.Queue == "slow" || r.Timeout == "5m" {
		t.Errorf("%+v", r)
	}

	// The slots of a day are counted, and then run.
	b.click("#act [data-act=backfill]")
	b.shows("dialog[open] [role=status]", "slots.")
	count := said[struct{ Slots int }](w, "schedules", "backfill", "hand", "--from", "24h", "--dry-run").Slots
	b.shows("dialog[open] [role=status]", fmt.Sprintf("%d slots.", count))
	b.leaves()
	if runs := w.Of("hand"); len(runs) != 1 {
		t.Errorf("the dialog was left, and it ran %d times", len(runs))
	}
	b.click("#act [data-act=backfill]")
	b.shows("dialog[open] [role=status]", fmt.Sprintf("%d slots.", count))
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return len(w.Of("hand")) == 1+count }, "not all slots of the day run")
	seen := map[time.Time]bool{}
	for _, a := range w.Of("hand") {
		seen[a.Slot] = true
	}
	if len(seen) != 1+count || count < 23 {
		t.Errorf("%d slots ran, of %d", len(seen)-1, count)
	}

	// Deleted, found among the deleted, and restored.
	b.click("#act [data-act=delete]")
	b.leaves()
	w.rule("hand")
	b.allow(`status of 404 .*/v1/schedules/hand`)
	b.click("#act [data-act=delete]")
	b.agrees()
	b.shows(".head [data-field=state]", "deleted")
	if code, _, _ := w.Try("schedules", "show", "hand"); code == 0 {
		t.Error("it is not deleted")
	}
	b.click("a[data-nav=schedules]")
	b.comes("/schedules")
	b.click("#states [data-key=deleted]")
	b.comes("/schedules?state=deleted")
	b.click("#list [aria-label='restore hand']")
	testredis.Eventually(w, patience, func() bool { code, _, _ := w.Try("schedules", "show", "hand"); return code == 0 }, "it is not restored")
	b.shows("#list", "No schedule was deleted in the last 30 days.")
	if r := w.rule("hand"); r.Every != "1h" || !r.Upcoming[0].Slot.Equal(made.Upcoming[0].Slot) {
		t.Errorf("%+v, and it was %+v", r, made)
	}
}
