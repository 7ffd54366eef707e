package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/onbeat/onbeat/internal/testredis"
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

// A schedule is made by the form and found on the list. The form says what is wrong beside its field, and what will happen before it does.
func TestSchedules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	b := w.browse()
	b.allow(`status of 400 .*/v1/(preview|schedules)`)
	b.open("/schedules")
	b.shows("#list", "No schedules yet.")
	b.click("a[href='/new-schedule']")
	b.comes("/new-schedule")
	b.fills("#every", "often")
	b.shows("#error-every", "not a duration")
	b.fills("#every", "1h")
	b.waits(`!document.querySelector('#error-every')`)
	b.fills("#start", time.Now().UTC().Truncate(time.Minute).Add(-90*time.Minute).Format(time.RFC3339)) // its slots are half an hour away
	b.fills("#payload", w.Payload("hand"))
	b.fills("#task", "http")
	b.click("#definition [type=submit]")
	b.shows("#error-name-of", "")
	b.focused("#name-of[aria-invalid=true]")
	b.keys("hand")
	b.waits(`document.querySelector('.ahead .slots time')?.dateTime.endsWith(':00.000Z')`) // from the start on
	ahead := b.slots(".ahead")
	b.click("#definition [type=submit]")
	if shown := b.slots("dialog[open]"); !slices.EqualFunc(shown, ahead, time.Time.Equal) {
		t.Errorf("the form shows the slots %s, the dialog %s", ahead, shown)
	}
	if code, _, _ := w.Try("schedules", "show", "hand"); code == 0 {
		t.Error("it is made before one has agreed")
	}
	b.agrees()
	b.comes("/schedules/hand")
	made := w.rule("hand")
	if made.Every != "1h" || made.Task != "http" || made.Payload.URL != w.Rec.URL("hand") || !made.Upcoming[0].Slot.Equal(ahead[0]) {
		t.Errorf("%+v, and the form said %s", made, ahead)
	}

	// On the list it is found by a pattern, and paused.
	b.click("a[data-nav=schedules]")
	b.comes("/schedules")
	b.click("#list [aria-label='pause hand']")
	b.agrees()
	b.shows("#list [data-field=state]", "paused")
	b.click("#list [aria-label='resume hand']")
	testredis.Eventually(w, patience, func() bool { return !w.rule("hand").Paused }, "it is not resumed")
	b.open("/schedules?match=************!") // matches nothing, at once
	b.shows("#list", "No schedule matches")
	b.open("/schedules?match=*AN*")
	b.shows("#list tbody", "hand")

	// One line a row: 30 on a screen, and the browser remembers it.
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("{name: many-%02d, every: 1h, task: echo}", i))
	}
	w.Must("schedules", "apply", w.File("many.yaml", "["+strings.Join(many, ", ")+"]"))
	b.looks(false, 1440, 900)
	b.open("/schedules")
	b.shows("#list tbody", "many-39")
	b.click("#compact")
	b.open("/schedules")
	b.waits(`[...document.querySelectorAll('#list tbody tr')].filter((r) => r.getBoundingClientRect().bottom <= innerHeight).length >= 30`)
	b.wantAccessible("compact schedules", level...)
	b.click("#compact")
	b.looks(false, 1280, 800)

	// Deleted, found among the deleted, and restored.
	w.Must("schedules", "delete", "hand")
	b.click("#states [data-key=deleted]")
	b.waits(`location.search.includes('state=deleted')`)
	b.click("#list [aria-label='restore hand']")
	testredis.Eventually(w, patience, func() bool { code, _, _ := w.Try("schedules", "show", "hand"); return code == 0 }, "it is not restored")
	if r := w.rule("hand"); r.Every != "1h" || !r.Upcoming[0].Slot.Equal(made.Upcoming[0].Slot) {
		t.Errorf("%+v, and it was %+v", r, made)
	}
}

// Several schedules are chosen, and paused, resumed and run at once. Each deed is for the chosen schedules, and for no others.
func TestSchedules_chosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	var many []string
	for i := range 6 {
		many = append(many, fmt.Sprintf("{name: job-%d, cron: '0 0 1 1 *', task: http, payload: {url: %q}}", i, w.Rec.URL(fmt.Sprint("job-", i))))
	}
	w.Must("schedules", "apply", w.File("many.yaml", "["+strings.Join(many, ", ")+"]"))
	paused := func() (list []string) {
		for i := range 6 {
			if name := fmt.Sprint("job-", i); w.rule(name).Paused {
				list = append(list, name)
			}
		}
		return list
	}
	b := w.browse()
	b.open("/schedules")
	b.shows("#list tbody", "job-5")
	if b.has("#chosen:not([hidden])") {
		t.Error("something is chosen at first")
	}
	b.click("[aria-label='choose job-1']")
	b.click("[aria-label='choose job-4']")
	b.shows("#chosen", "2 chosen")
	b.wantAccessible("schedules that are chosen", level...)
	b.click("#chosen [data-act=pause]")
	b.says("dialog[open]", "Pause 2 schedules", "job-1", "job-4")
	b.fills("dialog[open] [name=reason]", "the supplier moves")
	b.agrees()
	b.shows("#toasts", "2 schedules paused")
	if got := paused(); !slices.Equal(got, []string{"job-1", "job-4"}) {
		t.Errorf("%v are paused", got)
	}
	if out := w.Must("schedules", "show", "job-4"); !strings.Contains(out, "the supplier moves") {
		t.Errorf("the reason is not kept: %s", out)
	}

	// All schedules that the filters leave are chosen: each deed is for those that it fits.
	b.waits(`document.querySelector('#chosen').hidden`)
	b.open("/schedules?match=job-")
	b.shows("#list tbody", "job-5")
	b.click("[aria-label='choose job-0']")
	b.click("#chosen [data-act=all]")
	b.says("#chosen", "6 chosen", "Pause 4", "Resume 2", "Run 6")
	b.click("#chosen [data-act=resume]")
	b.leaves()
	if got := paused(); len(got) != 2 {
		t.Errorf("a dialog that is left resumed: %v are paused", got)
	}
	b.click("#chosen [data-act=resume]")
	b.agrees()
	b.shows("#toasts", "2 schedules resumed")
	if got := paused(); len(got) != 0 {
		t.Errorf("%v are paused", got)
	}
	b.shows("#chosen", "4 chosen")
	b.click("#chosen [data-act=none]")
	b.waits(`document.querySelector('#chosen').hidden`)
	b.click("[aria-label='choose job-2']")
	b.click("#chosen [data-act=trigger]")
	b.agrees()
	b.shows("#toasts", "1 schedule triggered")
	testredis.Eventually(w, patience, func() bool { return len(w.Of("job-2")) == 1 }, "it does not run")
	for i := range 6 {
		if n := len(w.Of(fmt.Sprint("job-", i))); i != 2 && n != 0 {
			t.Errorf("job-%d ran too", i)
		}
	}
}

// A schedule is paused, run by hand, changed while another changes it too, taken back, backfilled and deleted. A dialog that is left does nothing.
func TestSchedule(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.serve("v1", head)
	start := time.Now().UTC().Truncate(time.Minute).Add(-90 * time.Minute).Format(time.RFC3339)
	apply := func(every, more string) {
		t.Helper()
		w.Must("schedules", "apply", w.File("hand.yaml", fmt.Sprintf("[{name: hand, every: %s, start: %q, task: http, %s payload: {url: %q}}]", every, start, more, w.Rec.URL("hand"))))
	}
	apply("1h", "")
	b := w.browse()
	b.open("/schedules/hand")
	b.click("#act [data-act=pause]")
	b.agrees()
	b.shows(".head [data-field=state]", "paused")
	if !w.rule("hand").Paused {
		t.Error("it is not paused")
	}
	b.waits(`document.querySelector('#act').contains(document.activeElement)`) // though the button is another now
	b.click("#act [data-act=resume]")
	b.shows(".head [data-field=state]", "well")
	b.click("#act [data-act=trigger]")
	b.leaves()
	b.click("#act [data-act=trigger]")
	b.agrees()
	b.shows("#toasts a", "hand!")
	w.Arrived(b.text("#toasts a"))
	if runs := w.Of("hand"); len(runs) != 1 {
		t.Errorf("it ran %d times", len(runs))
	}
	b.shows("#runs tbody", "by hand")

	// A change is shown before it is made. Somebody else changes the schedule meanwhile, and neither change is lost.
	b.click("#act [data-act=edit]")
	b.comes("/schedules/hand?edit=true")
	b.fills("#every", "2h")
	b.keys(kb.Enter)
	b.says("dialog[open] .diff", "every", "1h", "2h")
	b.leaves()
	if r := w.rule("hand"); r.Every != "1h" {
		t.Errorf("the dialog was left, and it runs every %s", r.Every)
	}
	b.click("#definition [type=submit]")
	b.shows("dialog[open] .diff", "2h")
	apply("1h", "timeout: 5m,")
	b.allow(`status of 412 .*/v1/schedules/hand`)
	b.click("dialog[open] [data-act=ok]")
	b.says("dialog[open]", "Somebody changed it meanwhile", "timeout", "5m", "2h")
	if r := w.rule("hand"); r.Every != "1h" || r.Timeout != "5m" {
		t.Errorf("it was refused: %+v", r)
	}
	ahead := b.slots("dialog[open]")
	b.agrees()
	b.comes("/schedules/hand")
	b.focused("#act [data-act=edit]")
	if r := w.rule("hand"); r.Every != "2h" || r.Timeout != "5m" || !r.Upcoming[0].Slot.Equal(ahead[0]) {
		t.Errorf("%+v, and the dialog said %s", r, ahead)
	}

	// Back to the first definition.
	b.waits(`document.querySelectorAll('#history li').length === 3`)
	b.settled()
	b.click("#history li:last-child [data-act=revert]")
	b.says("dialog[open] .diff", "every", "2h", "1h", "timeout")
	b.agrees()
	b.waits(`document.querySelectorAll('#history li').length === 4`)
	if r := w.rule("hand"); r.Every != "1h" || r.Timeout == "5m" {
		t.Errorf("%+v", r)
	}

	// The slots of a day are counted, and then run.
	count := said[struct{ Slots int }](w, "schedules", "backfill", "hand", "--from", "24h", "--dry-run").Slots
	b.click("#act [data-act=backfill]")
	b.shows("dialog[open] [role=status]", "No slot of this time failed or was missed.")
	b.waits(`document.querySelector('dialog[open] [data-act=ok]').disabled`)
	b.click("dialog[open] [name=failed]")
	from := func(at string) {
		b.eval(fmt.Sprintf(`{const from = document.querySelector('dialog[open] [name=from]'); from.value = %s; from.dispatchEvent(new Event('input', { bubbles: true }))}`, at))
	}
	from(`'2020-01-01T00:00'`) // too many to run by one click
	b.shows("dialog[open]", "Type ")
	b.click("dialog[open] [data-act=ok]")
	b.waits(`document.querySelector('dialog[open] [name=number]:invalid')`)
	from(`new Date(Date.now() - 24 * 3600e3 - new Date().getTimezoneOffset() * 60e3).toISOString().slice(0, 19)`)
	b.waits(`!document.querySelector('dialog[open] [name=number]')`)
	b.shows("dialog[open] [role=status]", fmt.Sprintf("%d slots", count))
	b.agrees()
	testredis.Eventually(w, patience, func() bool { return len(w.Of("hand")) == 1+count }, "not all slots of the day run")

	// A slot that is overdue behind a run offers that run.
	late := b.another()
	late.changes(`(url, answer) => (url === '/v1/schedules/hand' ? { ...answer, health: 'overdue', why: 'a slot waits', held_by: 'hand!1' } : answer)`)
	late.open("/schedules/hand")
	late.shows("#holder a[href$='/hand!1']", "Open the run")
	late.shows("#holder button", "Cancel it")

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
}
