package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/trial"
	"github.com/onbeat/onbeat/task"
)

// cadence is a schedule that goes on through an upgrade.
type cadence struct {
	name  string
	every time.Duration
	query string   // of the URL that it calls
	more  []string // fields

	alone  bool // its runs exclude each other, so slots may be skipped for overlap
	byHand bool // applied, and not declared
	slots  int  // how many slots it has in all; zero: no end
}

// tickEvery is the interval of most schedules of an upgrade.
const tickEvery = 200 * time.Millisecond

// cadences are the schedules of an upgrade, with all kinds of intervals, policies and overlap.
//
// The program of 43df4da may count slot zero of a schedule that starts at once as missed. That slot then runs late and
// without its jitter, or is skipped. So the two schedules in which this would show start at a round time.
func cadences() []cadence {
	list := []cadence{
		{name: "missed-once", every: tickEvery, more: []string{"missed: once"}},
		{name: "missed-all", every: tickEvery, more: []string{"missed: all"}},
		{name: "missed-skip", every: tickEvery, more: []string{"missed: skip", "start: aligned"}},
		{name: "skip", every: 2 * tickEvery, more: []string{"overlap: skip"}, alone: true},
		{name: "queue", every: 2 * tickEvery, more: []string{"overlap: queue"}, alone: true},
		{name: "slow-allow", every: 500 * time.Millisecond, query: "?for=700ms"},
		{name: "slow-skip", every: 500 * time.Millisecond, query: "?for=700ms", more: []string{"overlap: skip"}, alone: true},
		{name: "slow-queue", every: 500 * time.Millisecond, query: "?for=700ms", more: []string{"overlap: queue"}, alone: true},
		{name: "third", every: 330 * time.Millisecond, more: []string{"start: aligned", "priority: high"}},
		{name: "jitter", every: time.Second, more: []string{"jitter: 150ms", "queue: other", "start: aligned"}},
		{name: "twelve", every: 2 * tickEvery, more: []string{"max_runs: 12"}, slots: 12},
		{name: "by-hand-of-old", every: tickEvery, byHand: true},
		{name: "by-hand-of-new", every: tickEvery, byHand: true},
	}
	for i := range 5 {
		list = append(list, cadence{name: fmt.Sprintf("tick-%d", i), every: tickEvery})
	}
	return list
}

// entry returns the cadence as an entry of a config file.
func (u *upgrade) entry(c cadence) string {
	return u.BeatTo(c.name+c.query, c.name, c.every, c.more...)
}

// config returns a file that declares all cadences except those that are applied.
func (u *upgrade) config() string {
	u.Helper()
	var list []string
	for _, c := range cadences() {
		if !c.byHand {
			list = append(list, u.entry(c))
		}
	}
	return u.Config("onbeat.yaml", u.head, list...)
}

// appliesByHand makes each program apply a cadence, and makes the two schedules that meddles changes later.
func (u *upgrade) appliesByHand() {
	u.Helper()
	for _, c := range cadences() {
		switch c.name {
		case "by-hand-of-old":
			u.apply(u.old, u.entry(c), u.Beat("turning", tickEvery))
		case "by-hand-of-new":
			u.apply(u.next, u.entry(c), u.Beat("resting", tickEvery))
		}
	}
}

// meddles makes one program pause or resume a schedule and change another, while the other program leads.
func (u *upgrade) meddles(by program, odd bool) {
	u.Helper()
	word, every := "resume", tickEvery
	if odd {
		word, every = "pause", 300*time.Millisecond
	}
	u.must(by, "schedules", word, "resting")
	if did := u.apply(by, u.Beat("turning", every)); did["turning"] != "changed" {
		u.Errorf("%s: the %s gives turning another interval, and says %v", u.now(), by, did)
	}
}

// goesOn waits until the first of the five has ticked n times more.
func (u *upgrade) goesOn(n int) {
	u.Helper()
	seen := len(u.Of("tick-0"))
	u.eventually(func() bool { return len(u.Of("tick-0")) >= seen+n }, "tick-0 stopped")
}

// wantWhole fails for each slot of the cadences that was missed, doubled, early or off its grid. A slot may be repeated,
// under a larger fence, only if an instance was killed.
func (u *upgrade) wantWhole(scenario string, killed bool, besides ...string) {
	u.Helper()
	old, next := u.audits.old, u.audits.next
	var all rig.Figures
	var ticks []trial.Arrival
	for _, c := range cadences() {
		f, skipped := u.wantSlots(c)
		if c.every == tickEvery {
			ticks = append(ticks, u.Of(c.name)...)
		} else {
			f.Gap = 0 // the longest gap and the lags are only of schedules with the same interval
		}
		all.Add(f)
		if f.Repeated > 0 && !killed {
			u.Errorf("%s: %d slots were repeated, and nothing was killed", c.name, f.Repeated)
		}
		u.wantAgreed(u.old, old[c.name], c.name, skipped)
		u.wantAgreed(u.next, next[c.name], c.name, skipped)
	}
	for _, name := range []string{"turning", "resting"} {
		u.wantAgreed(u.old, old[name], name, 0)
		u.wantAgreed(u.next, next[name], name, 0)
		u.wantOnce(name)
	}
	lags := rig.Lags(ticks)
	all.P50, all.P99, all.Worst = rig.Quantile(lags, .5), rig.Quantile(lags, .99), rig.Quantile(lags, 1)
	u.Row(scenario, all, besides...)
}

// wantSlots judges one cadence by the recorder. If slots may be skipped for overlap, it returns the absent ones and does not
// count them as missed, because only the audits can tell.
func (u *upgrade) wantSlots(c cadence) (f rig.Figures, skipped int64) {
	u.Helper()
	list := u.Of(c.name)
	if len(list) == 0 {
		u.Errorf("%s: nothing arrived", c.name)
		return f, 0
	}
	slots := rig.BySlot(u.T, list)
	first := slices.MinFunc(list, bySlotTime).Slot
	last := u.ended.Add(-2*c.every - time.Second)
	if c.slots > 0 {
		last = first.Add(time.Duration(c.slots-1) * c.every)
	}
	f = u.JudgeOne(c.name, list, c.every, last)
	if c.alone {
		skipped, f.Missed = int64(f.Missed), 0
		u.wantAlone(c.name, list)
		u.wantLively(c.name, list)
	}
	if f.Missed+f.Duplicated+f.OffGrid > 0 {
		u.Errorf("%s: %d slots missed, %d doubled, %d off the grid, of %d", c.name, f.Missed, f.Duplicated, f.OffGrid, f.Slots)
		u.tellMissed(c, first, last, slots)
	}
	if c.slots > 0 && f.Slots != c.slots {
		u.Errorf("%s: %d slots ran, of the %d that it has", c.name, f.Slots, c.slots)
	}
	u.wantOnce(c.name)
	return f, skipped
}

// tellMissed names the first slots that did not arrive, their steps, and the release that ran the slot before each.
func (u *upgrade) tellMissed(c cadence, first, last time.Time, slots map[int64][]trial.Arrival) {
	u.Helper()
	before, told := "nobody", 0
	for slot := first; !slot.After(last) && told < 5; slot = slot.Add(c.every) {
		if runs := slots[slot.UnixMilli()]; len(runs) > 0 {
			before = u.whose(runs[0].Release)
			continue
		}
		if c.alone {
			continue
		}
		told++
		u.Errorf("%s: slot %s never ran. It fell in %s, was to be pushed there or since %s, and the slot before ran on %s", c.name,
			slot.UTC().Format(stampLayout), u.during(slot), u.during(slot.Add(-pushedAhead)), before)
	}
}

const stampLayout = "15:04:05.000"

// wantOnce names the slots of a schedule that ran twice without a reason, came early, or are off the grid of their time.
func (u *upgrade) wantOnce(name string) {
	u.Helper()
	for _, runs := range rig.BySlot(u.T, u.Of(name)) {
		slices.SortFunc(runs, byArrival)
		for i, a := range runs {
			if i == 0 && a.At.Before(a.Slot) {
				u.Errorf("%s: %s ran it %s early, in %s", a.ID, u.whose(a.Release), a.Slot.Sub(a.At), u.during(a.At))
			}
			if i > 0 && (a.Attempt <= runs[i-1].Attempt || a.Fence <= runs[i-1].Fence) {
				u.Errorf("%s: %s ran it and %s ran it again, in %s: %s", a.ID, u.whose(runs[i-1].Release), u.whose(a.Release),
					u.during(a.At), rig.Describe(runs))
			}
		}
	}
}

// wantAlone fails if two runs of a schedule or a key overlapped.
func (u *upgrade) wantAlone(name string, list []trial.Arrival) {
	u.Helper()
	list = slices.SortedFunc(slices.Values(list), byArrival)
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; !a.Ended.IsZero() && b.At.Before(a.Ended) {
			u.Errorf("%s: %s began on %s while %s still ran on %s, in %s", name, b.ID, u.whose(b.Release), a.ID,
				u.whose(a.Release), u.during(b.At))
		}
	}
}

// wantLively fails if a schedule whose slots may be skipped had no run for long. That would show a lost or handed-back run that
// holds its key for ever.
func (u *upgrade) wantLively(name string, list []trial.Arrival) {
	u.Helper()
	const longest = 2*upgradeLease + 2*time.Second
	list = append(slices.SortedFunc(slices.Values(list), byArrival), trial.Arrival{At: u.ended})
	for i := 1; i < len(list); i++ {
		if a, b := list[i-1], list[i]; b.At.Sub(a.At) > longest {
			u.Errorf("%s: no slot ran for %s after %s, which ran on %s, in %s", name, b.At.Sub(a.At), a.ID, u.whose(a.Release), u.during(a.At))
		}
	}
}

// verdicts is the output of `onbeat audit --json` about a schedule.
type verdicts struct {
	Schedule                                   string
	OnTime                                     int64 `json:"on_time"`
	OffGrid                                    int64 `json:"off_grid"`
	Late, Missed, Skipped, Lost, Early, Failed int64
	Duplicated, Unknown, Cancelled, Pending    int64
	Why                                        map[string]int64
	Breaks                                     []struct {
		Slot            time.Time
		Verdict, Detail string
	}
}

// audited returns the verdicts of one program's audit, by schedule. It fails if the audit finds a broken promise.
func (u *upgrade) audited(p program) map[string]verdicts {
	u.Helper()
	code, out, errs := u.try(p, "audit", "--json")
	var report struct{ Schedules []verdicts }
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		u.Fatalf("%s: the audit of the %s: exit %d: %v: %s%s", u.now(), p, code, err, out, errs)
	}
	by, told := map[string]verdicts{}, 0
	for _, v := range report.Schedules {
		by[v.Schedule] = v
		for _, b := range v.Breaks {
			what := fmt.Sprintf("the audit of the %s: slot %s of %s: %s: %s", p, b.Slot.Format(stampLayout), v.Schedule, b.Verdict, b.Detail)
			if told++; told <= 10 && !u.broken[what] {
				u.Errorf("%s: %s. It fell in %s", u.now(), what, u.during(b.Slot))
			}
			u.broken[what] = true
		}
	}
	if code != 0 {
		u.Errorf("%s: the audit of the %s: exit %d, %d broken slots in all: %s", u.now(), p, code, told, strings.TrimSpace(errs))
	}
	return by
}

// wantAgreed fails unless an audit counts the slots that the recorder saw, none missed or unknown, and the given number
// skipped.
func (u *upgrade) wantAgreed(p program, v verdicts, name string, skipped int64) {
	u.Helper()
	slots := map[string]bool{}
	for _, a := range u.Of(name) {
		if _, _, ok := task.ParseSlotID(a.ID); ok {
			slots[a.ID] = true
		}
	}
	if got := v.OnTime + v.Late; got != int64(len(slots)) {
		u.Errorf("%s: the audit of the %s says that %d slots ran, the recorder saw %d: %+v", name, p, got, len(slots), v)
	}
	// The recorder is judged only up to a moment. The audit alone has the slots that were skipped after it.
	if v.Missed+v.Unknown+v.Failed+v.Cancelled > 0 || v.Skipped < skipped || (skipped == 0 && !u.alone(name) && v.Skipped > 0) {
		u.Errorf("%s: the audit of the %s does not account for what the recorder saw, with %d slots that did not run: %+v", name, p,
			skipped, v)
	}
}

func (u *upgrade) alone(name string) bool {
	return slices.ContainsFunc(cadences(), func(c cadence) bool { return c.name == name && c.alone })
}

// wantUntouched fails if a handover made, changed or retired a schedule: both programs declare the same.
func (u *upgrade) wantUntouched() {
	u.Helper()
	for _, p := range []program{u.old, u.next} {
		var list struct{ Items []event }
		u.read(p, &list, "events", "--limit", "10000")
		seen := map[string]int{}
		for _, e := range list.Items {
			name := e.Fields["schedule"]
			if name == "turning" || name == "resting" || !strings.HasPrefix(e.Event, "schedule ") {
				continue
			}
			if seen[name]++; seen[name] > 1 || e.Event != "schedule made" {
				u.Errorf("the %s shows the event %q of %s, which no release changes, in %s: %v", p, e.Event, name, u.during(e.At), e.Fields)
			}
		}
		if declared := len(cadences()); len(seen) != declared {
			u.Errorf("the %s shows that %d schedules were made, want %d", p, len(seen), declared)
		}
	}
}

func byArrival(a, b trial.Arrival) int { return a.At.Compare(b.At) }
