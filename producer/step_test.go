package producer

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// epoch is where the tests of pure functions begin.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// entryOf is an entry as the leader would hold it: anchored at epoch, with what was dealt with so far.
func entryOf(t testing.TB, s Schedule, change ...func(*queue.Last)) *entry {
	t.Helper()
	if s.Name == "" {
		s.Name = "s"
	}
	if s.Task == "" {
		s.Task = "t"
	}
	d := definition{definitionHead{V: definitionVersion, Origin: Applied}, s}
	text, err := d.encode()
	must(t, err)
	last := queue.Last{Rev: 1, Anchor: epoch}
	for _, f := range change {
		f(&last)
	}
	e, err := newEntry(queue.Stored{Name: s.Name, Definition: text, Last: last.String()})
	must(t, err)
	return e
}

// fate is what a sequence of steps did to slots.
type fate struct {
	pushed []time.Time
	due    map[time.Time]time.Time
	low    map[time.Time]bool
	noted  []noted
	steps  int
}

type noted struct {
	from, to time.Time
	n        int64
	why      string
}

// drive makes steps until there is none left to make at now, as the leader does.
func drive(t interface{ Fatalf(string, ...any) }, e *entry, now, missed, until time.Time) fate {
	return driveUp(t, e, now, missed, until, 1<<30)
}

// driveUp is the same, with no more than so many steps of those that push what the schedule is behind with.
func driveUp(t interface{ Fatalf(string, ...any) }, e *entry, now, missed, until time.Time, repays int) fate {
	f := fate{due: map[time.Time]time.Time{}, low: map[time.Time]bool{}}
	for {
		m, ok := e.step(now, missed, until)
		if !ok && repays > 0 {
			m, ok = e.repay(now, turnSlots)
			repays--
		}
		if !ok {
			return f
		}
		if f.steps++; f.steps > 100_000 {
			t.Fatalf("still stepping after %d steps, at %v", f.steps, m.last.Slot)
		}
		step := &m.step
		if len(step.Push) > stepSlots+1 {
			t.Fatalf("a step pushes %d slots", len(step.Push))
		}
		if step.Expect != e.raw || step.Becomes != m.last.String() || step.Name != e.s.Name || step.Behind != e.owed {
			t.Fatalf("step %+v does not follow from %q and %q", step, e.raw, e.owed)
		}
		f.take(t, e, step)
		e.follow(&m)
		again, err := newEntry(queue.Stored{Name: e.s.Name, Definition: e.text(t), Last: step.Becomes, Behind: step.Remains})
		if err != nil || again.behind.String() != step.Remains || !again.next.Equal(e.next) {
			t.Fatalf("%+v is read as %+v: %v", e, again, err)
		}
	}
}

// text is an entry's definition.
func (e *entry) text(t interface{ Fatalf(string, ...any) }) string {
	d := definition{*e.head, *e.s}
	text, err := d.encode()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return text
}

func (f *fate) take(t interface{ Fatalf(string, ...any) }, e *entry, step *queue.Step) {
	for _, line := range strings.Split(step.Note, "\n") {
		if line == "" {
			continue
		}
		n, err := parseRange(line, e.s.Name)
		if err != nil {
			t.Fatalf("note %q: %v", line, err)
		}
		f.noted = append(f.noted, n)
	}
	for _, p := range step.Push {
		slot := p.Task.Slot
		f.pushed = append(f.pushed, slot)
		f.due[slot] = p.Due
		f.low[slot] = p.Task.Priority == task.Low
		if p.Task.ID != task.SlotID(e.s.Name, slot) || p.Task.Schedule != e.s.Name {
			t.Fatalf("slot %v has task %q of %q", slot, p.Task.ID, p.Task.Schedule)
		}
	}
}

func parseRange(line, name string) (n noted, err error) {
	var from, to int64
	rest, ok := strings.CutPrefix(line, name+"@")
	if !ok {
		return n, fmt.Errorf("is not of %s", name)
	}
	fields := strings.SplitN(rest, " ", 4)
	if len(fields) != 4 {
		return n, fmt.Errorf("%d fields", len(fields))
	}
	if _, err := fmt.Sscanf(fields[0], "%d..%d", &from, &to); err != nil {
		return n, err
	}
	n = noted{from: time.UnixMilli(from).UTC(), to: time.UnixMilli(to).UTC(), why: fields[3]}
	n.n, err = strconv.ParseInt(fields[2], 10, 64)
	return n, err
}

func sec(n float64) time.Time { return epoch.Add(time.Duration(n * float64(time.Second))) }

func seconds(list []time.Time) string {
	var b strings.Builder
	for i, at := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatFloat(at.Sub(epoch).Seconds(), 'f', -1, 64))
	}
	return b.String()
}

func (f *fate) notes() string {
	var list []string
	for _, n := range f.noted {
		list = append(list, fmt.Sprintf("%s:%d %s", seconds([]time.Time{n.from, n.to}), n.n, n.why))
	}
	return strings.Join(list, "; ")
}

func lastSlot(n float64) func(*queue.Last) {
	return func(l *queue.Last) { l.Slot = sec(n); l.Runs = int64(n) + 1 }
}

func TestStep(t *testing.T) {
	t.Parallel()
	every := schedule.Every(time.Second)
	with := func(f func(*schedule.Rule)) schedule.Rule {
		r := every
		f(&r)
		return r
	}
	all := with(func(r *schedule.Rule) { r.Missed = schedule.MissedAll; r.CatchUp = 3 * time.Second })
	skip := with(func(r *schedule.Rule) { r.Missed = schedule.MissedSkip })
	tests := []struct {
		name                   string
		rule                   schedule.Rule
		change                 func(*queue.Last)
		now, missed, until     float64
		pushed, late, disposed string
	}{
		{"a new schedule begins with its anchor", every, nil, 0, -1, 2, "0 1 2", "", ""},
		{"an anchor a moment ago is on time", every, nil, .4, -.6, 2, "0 1 2", "", ""},
		{"nothing before its anchor", every, nil, -10, -11, -1, "", "", ""},
		{"goes on after the last slot", every, lastSlot(3), 3, 2, 6, "4 5 6", "", ""},
		{"nothing to do", every, lastSlot(6), 3, 2, 6, "", "", ""},
		{"late within the grace is on time", every, lastSlot(3), 4.9, 3.9, 6, "4 5 6", "", ""},
		{"once: only the newest missed one", every, lastSlot(3), 8.5, 7.5, 10, "7 8 9 10", "7", "4 6:3 policy once"},
		{"once: a single missed one runs", every, lastSlot(3), 5.5, 4.5, 6, "4 5 6", "4", ""},
		{"once: two missed", every, lastSlot(3), 6.5, 5.5, 6, "5 6", "5", "4 4:1 policy once"},
		{"once: missed exactly now", every, lastSlot(3), 7, 7, 8, "7 8", "7", "4 6:3 policy once"},
		{"once: never run before", every, nil, 2, 2, 3, "2 3", "2", "0 1:2 policy once"},
		{"once: the clock lies within a millisecond of a slot", every, lastSlot(3), 7, 6.9995, 8, "6 7 8", "6", "4 5:2 policy once"},
		{"skip: none of them", skip, lastSlot(3), 8.5, 7.5, 9, "8 9", "", "4 7:4 policy skip"},
		{"skip: all up to the present", skip, lastSlot(3), 8, 8, 8.5, "", "", "4 8:5 policy skip"},
		{"all: on time first, then the oldest first", all, lastSlot(3), 6.5, 5.5, 7, "6 7 4 5", "4 5", ""},
		{"all: at the edge of catch_up", all, lastSlot(3), 10, 9, 10, "10 7 8 9", "7 8 9", "4 6:3 older than catch_up"},
		{"all: within a millisecond past the edge", all, lastSlot(3), 10.001, 9, 10, "10 8 9", "8 9", "4 7:4 older than catch_up"},
		{"all: everything is too old", all, lastSlot(3), 100, 90, 100, "91 92 93 94 95 96 97 98 99 100", "", "4 90:87 older than catch_up"},
		{"until is the last", with(func(r *schedule.Rule) { r.Until = sec(5) }), lastSlot(3), 3, 2, 9, "4 5", "", ""},
		{"until was missed", with(func(r *schedule.Rule) { r.Until = sec(5) }), lastSlot(3), 30, 29, 40, "5", "5", "4 4:1 policy once"},
		{"max_runs ends it", with(func(r *schedule.Rule) { r.MaxRuns = 6 }), lastSlot(3), 3, 2, 9, "4 5", "", ""},
		{"max_runs counts what was missed and run", with(func(r *schedule.Rule) { r.MaxRuns = 5 }), lastSlot(3), 30, 29, 40, "29", "29", "4 28:25 policy once"},
		{"max_runs ends catching up", with(func(r *schedule.Rule) { r.MaxRuns = 5; r.Missed = schedule.MissedAll }), lastSlot(3), 30, 29, 40, "4", "4", ""},
		{"exhausted", with(func(r *schedule.Rule) { r.MaxRuns = 4 }), lastSlot(3), 30, 29, 40, "", "", ""},
		{"paused", every, func(l *queue.Last) { l.Slot, l.Paused = sec(3), true }, 30, 29, 40, "", "", ""},
		{"cron", schedule.Cron("*/2 * * * * *", nil), nil, 0, -1, 5, "0 2 4", "", ""},
		{"cron, missed once", schedule.Cron("*/2 * * * * *", nil), lastSlot(2), 9, 8, 11, "8 10", "8", "4 6:2 policy once"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var change []func(*queue.Last)
			if tt.change != nil {
				change = append(change, tt.change)
			}
			e := entryOf(t, Schedule{Rule: tt.rule}, change...)
			f := drive(t, e, sec(tt.now), sec(tt.missed), sec(tt.until))
			if got := seconds(f.pushed); got != tt.pushed {
				t.Errorf("pushed %q, want %q", got, tt.pushed)
			}
			var late []time.Time
			for _, slot := range f.pushed {
				if !slot.After(sec(tt.missed)) {
					late = append(late, slot)
				}
			}
			if got := seconds(late); got != tt.late {
				t.Errorf("missed, and to run %q, want %q", got, tt.late)
			}
			if got := f.notes(); got != tt.disposed {
				t.Errorf("noted %q, want %q", got, tt.disposed)
			}
		})
	}
}

func TestStep_aYearAtOneSecondIsInstant(t *testing.T) {
	t.Parallel()
	year := 365 * 24 * time.Hour
	cron := "* * * * * *"
	for name, rule := range map[string]schedule.Rule{
		"once": schedule.Every(time.Second), "skip": {Every: time.Second, Missed: schedule.MissedSkip},
		"all": {Every: time.Second, Missed: schedule.MissedAll, CatchUp: year}, "cron once": {Cron: cron},
		"cron all": {Cron: cron, Missed: schedule.MissedAll, CatchUp: year},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := entryOf(t, Schedule{Rule: rule}, lastSlot(0))
			now := epoch.Add(year)
			start := time.Now()
			f := drive(t, e, now, now.Add(-lateGrace), now.Add(10*time.Second))
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			if len(f.pushed) > maxCatchUp+20 {
				t.Errorf("pushed %d slots", len(f.pushed))
			}
			slots := int64(len(f.pushed))
			for _, n := range f.noted {
				slots += n.n
			}
			if want := int64(year/time.Second) + 10; slots != want {
				t.Errorf("%d slots were dealt with, want %d", slots, want)
			}
		})
	}
}

func TestStep_oneMillisecond(t *testing.T) {
	t.Parallel()
	e := entryOf(t, Schedule{Rule: schedule.Every(time.Millisecond)})
	f := drive(t, e, epoch, epoch.Add(-time.Second), epoch.Add(12500*time.Millisecond))
	if len(f.pushed) != 12_501 || f.steps < 25 {
		t.Fatalf("pushed %d slots in %d steps", len(f.pushed), f.steps)
	}
}

// TestStep_everySlotOnce compares with an oracle that knows only the rule's slots one by one.
func TestStep_everySlotOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r schedule.Rule
		if rapid.Bool().Draw(t, "cron") {
			r = schedule.Cron(rapid.SampledFrom([]string{"* * * * * *", "*/7 * * * * *", "13 * * * * *", "0 */2 * * * *"}).Draw(t, "expr"), nil)
		} else {
			r = schedule.Every(time.Duration(rapid.SampledFrom([]int{7, 100, 333, 1000, 60_000}).Draw(t, "every")) * time.Millisecond)
			r.Jitter = time.Duration(rapid.IntRange(0, int(r.Every.Milliseconds())).Draw(t, "jitter")) * time.Millisecond
		}
		r.Missed = rapid.SampledFrom([]schedule.Missed{"", schedule.MissedOnce, schedule.MissedAll, schedule.MissedSkip}).Draw(t, "missed")
		r.CatchUp = time.Duration(rapid.IntRange(0, 20_000).Draw(t, "catch up")) * time.Millisecond
		r.MaxRuns = rapid.SampledFrom([]int64{0, 0, 0, 1, 5, 700}).Draw(t, "max runs")
		if rapid.Bool().Draw(t, "ends") {
			r.Until = epoch.Add(time.Duration(rapid.IntRange(0, 60_000).Draw(t, "until")) * time.Millisecond)
		}
		s := Schedule{Name: "s", Task: "t", Rule: r}
		e, err := oracleEntry(s)
		if err != nil {
			t.Fatal(err)
		}
		now := epoch
		seen := map[int64]int{}
		before := map[bool]time.Time{}
		for rounds := rapid.IntRange(1, 6).Draw(t, "rounds"); rounds > 0; rounds-- {
			now = now.Add(time.Duration(rapid.IntRange(0, 30_000_000).Draw(t, "pause in us")) * time.Microsecond)
			until := now.Add(5 * time.Second)
			repays := 1 << 30
			if rounds > 1 {
				repays = rapid.SampledFrom([]int{0, 1, 1 << 30}).Draw(t, "steps to catch up")
			}
			f := driveUp(t, e, now, now.Add(-lateGrace), until, repays)
			for _, slot := range f.pushed {
				late := f.low[slot] // its schedule was behind with it
				if !slot.After(before[late]) {
					t.Fatalf("slot %v after %v", slot, before[late])
				}
				before[late] = slot
				seen[slot.UnixMilli()]++
				if due := f.due[slot]; due.Before(slot) || due.Sub(slot) >= max(r.Jitter, 1) {
					t.Fatalf("slot %v is due %v", slot, due)
				}
				if late && slot.After(now.Add(-lateGrace)) {
					t.Fatalf("slot %v counts as missed at %v", slot, now)
				}
			}
			for _, n := range f.noted {
				count := int64(0)
				for slot := range e.grid.Between(n.from.Add(-time.Nanosecond), n.to) {
					seen[slot.UnixMilli()]++
					count++
				}
				if count != n.n || n.from.After(n.to) {
					t.Fatalf("note %+v covers %d slots", n, count)
				}
				if n.to.After(now.Add(-lateGrace)) {
					t.Fatalf("at %v: noted %v, which was not missed", now, n.to)
				}
			}
			if r.MaxRuns > 0 && e.last.Runs > r.MaxRuns {
				t.Fatalf("%d runs of %d", e.last.Runs, r.MaxRuns)
			}
			for _, s := range e.behind {
				for slot := range e.grid.Between(s.From, s.To) {
					if seen[slot.UnixMilli()] != 0 {
						t.Fatalf("slot %v was dealt with, and is behind", slot)
					}
				}
			}
			if e.exhausted() || len(e.behind) > 0 {
				continue
			}
			for slot := range e.grid.Between(epoch.Add(-time.Millisecond), until) {
				if seen[slot.UnixMilli()] != 1 {
					t.Fatalf("slot %v was dealt with %d times", slot, seen[slot.UnixMilli()])
				}
			}
		}
		for ms, n := range seen {
			if n != 1 {
				t.Fatalf("slot %d was dealt with %d times", ms, n)
			}
		}
	})
}

func oracleEntry(s Schedule) (*entry, error) {
	d := definition{definitionHead{V: definitionVersion}, s}
	text, err := d.encode()
	if err != nil {
		return nil, err
	}
	return newEntry(queue.Stored{Name: s.Name, Definition: text, Last: queue.Last{Rev: 1, Anchor: epoch}.String()})
}

// A push waits for half past a second, where it keeps nothing waiting, if that is not too early.
func TestQuiet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := epoch.Add(time.Duration(rapid.Int64Range(0, 3e9).Draw(t, "at")))
		most := time.Duration(rapid.Int64Range(0, 2e9).Draw(t, "most"))
		got := quiet(at, most)
		half := at.Sub(epoch.Add(-time.Second/2)) % time.Second // since the last half
		switch {
		case half < most && got != at.Add(-half):
			t.Errorf("%v, at most %v before: %v", at, most, got)
		case half >= most && got != at:
			t.Errorf("%v, not %v before: %v", at, most, got)
		}
	})
}
