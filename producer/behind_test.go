package producer

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// after returns a leader that takes over after a time without a leader. It has opened the gate, and pushed nothing yet.
func (w *world) after(gap time.Duration, before *term) *term {
	w.Helper()
	if before != nil {
		_, err := w.reg.Deregister(w.Context(), before.term.Instance, before.term.Gen)
		must(w, err)
	}
	time.Sleep(gap)
	tn := w.lead("after "+gap.String()+task.NewID(time.Now()), "v1", nil)
	if tn.open {
		w.Fatal("the gate is open though nobody led")
	}
	must(w, tn.takeStock(w.Context()))
	return tn
}

// all is a schedule of a slot a second that runs each.
func all(name string) Schedule {
	return Schedule{Name: name, Task: "job", Rule: schedule.Rule{Every: time.Second, Missed: schedule.MissedAll}}
}

func (w *world) applied(s Schedule) {
	w.Helper()
	_, err := w.Apply(w.Context(), s)
	must(w, err)
}

// finish has a leader push until it is not behind any more.
func (w *world) finish(tn *term) {
	w.Helper()
	for range 10_000 {
		must(w, tn.push(w.Context()))
		if len(tn.behind) == 0 {
			return
		}
	}
	w.Fatal("it does not end")
}

// The gate opens before missed slots are pushed. Slots on time are pushed next, and then the missed slots in parts,
// the oldest first. Slots on time go on in front of them.
func TestBehind_nothingOnTimeWaits(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b", "c", "d"} {
			w.applied(all(name))
		}
		tn := w.after(40*time.Minute, nil)
		if n := w.rdb.HLen(t.Context(), w.q.Keys().Tasks).Val(); n > 4 { // the slots of now
			t.Errorf("%d slots were pushed before the gate opened", n)
		}
		rounds := 0
		for ; len(tn.behind) > 0; rounds++ {
			if d := tn.wait(); d != 0 {
				t.Fatalf("it is behind, and waits for %v", d)
			}
			time.Sleep(500 * time.Millisecond)
			must(t, tn.push(t.Context()))
			for _, name := range []string{"a", "b", "c", "d"} {
				if next := tn.entries[name].next; next.Sub(w.now()) < tn.cfg.Horizon {
					t.Fatalf("%s is behind with what is on time: next %v, now %v", name, next, w.now())
				}
			}
		}
		if rounds < 4*2400/roundSlots {
			t.Errorf("all was pushed in %d rounds", rounds)
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			if pushed, noted := w.account(name); pushed < 2400 || noted != 0 {
				t.Errorf("%s: %d pushed, %d noted", name, pushed, noted)
			}
		}
	})
}

// Nothing runs early: a slot that was missed may have a jitter that has not gone by when its turn comes, whatever becomes
// of missed slots.
func TestPromise6_whatIsPushedLateWaitsForItsJitter(t *testing.T) {
	t.Parallel()
	for _, missed := range []schedule.Missed{schedule.MissedAll, schedule.MissedOnce} {
		ahead := 0
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			s := Schedule{Name: name, Rule: schedule.Rule{Every: 10 * time.Second, Jitter: 10 * time.Second, Missed: missed}}
			now := sec(102)
			f := drive(t, entryOf(t, s, lastSlot(60)), now, sec(100), sec(100))
			for _, slot := range f.pushed {
				first, due := s.JitterFor(name, slot), f.due[slot]
				if due.IsZero() {
					due = now
				}
				if due.Before(first) {
					t.Errorf("%s: slot %v of %s is due at %v, and its time is %v", missed, slot, name, due, first)
				}
				if first.After(now) {
					ahead++
				}
			}
		}
		if ahead == 0 {
			t.Errorf("%s: all jitter had gone by: nothing was put to the test", missed)
		}
	}
}

// A leader that dies in the middle, or before it has opened the gate, is followed by one that goes on from there.
func TestBehind_goesOnWithTheNextLeader(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.applied(all("s"))
		var tn *term
		for i := range 5 {
			tn = w.after(5*time.Minute, tn)
			if i != 2 {
				must(t, tn.push(t.Context()))
			}
			w.account("s")
		}
		if n := len(tn.entries["s"].behind); n < 2 {
			t.Errorf("it is behind with %d spans: nothing was put to the test", n)
		}
		w.finish(tn)
		if pushed, noted := w.account("s"); pushed < 1500 || noted != 0 {
			t.Errorf("%d pushed, %d noted", pushed, noted)
		}
		if n := w.rdb.Exists(t.Context(), w.q.Keys().Behind).Val(); n != 0 {
			t.Error("it is behind with nothing, and Redis says that it is")
		}
	})
}

// Each leader dies between catching up and opening: of the whole time, the latest missed slot runs.
func TestOutage_aCrashBeforeTheGateOpensIsNoSecondOutage(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply("s", schedule.Rule{Every: time.Second, Missed: schedule.MissedOnce})
		for i := range 4 {
			tn := w.lead("one"+string(rune('a'+i)), "v1", nil)
			now, err := tn.tick(ctx)
			must(t, err)
			tn.began, tn.outage = now, before(now)
			_, err = tn.stock(ctx)
			must(t, err)
			must(t, tn.catchUp(ctx, tn.outage))
			_, err = w.reg.Deregister(ctx, tn.term.Instance, tn.term.Gen)
			must(t, err)
			time.Sleep(3500 * time.Millisecond)
		}
		tn := w.after(0, nil)
		must(t, tn.push(ctx))
		w.account("s")
		var late []int64
		for ms := range w.pushed("s") {
			if ms < tn.began.UnixMilli() {
				late = append(late, ms)
			}
		}
		if len(late) != 1 || tn.began.UnixMilli()-late[0] > 1000 {
			t.Errorf("of the missed slots %v run; want the latest before %d", late, tn.began.UnixMilli())
		}
	})
}

// A change of a schedule that is behind: with a new payload it stays behind with the same slots. A new policy or grid, and
// its deletion, end them.
func TestBehind_whenTheScheduleChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(w *world)
		word   string // noted of the slots
		runs   bool   // they are pushed all the same
	}{
		"payload":  {func(w *world) { s := all("s"); s.Payload = json.RawMessage(`1`); w.applied(s) }, "", true},
		"policy":   {func(w *world) { s := all("s"); s.Missed = schedule.MissedSkip; w.applied(s) }, "missed", false},
		"interval": {func(w *world) { s := all("s"); s.Every = 3 * time.Second; w.applied(s) }, "changed", false},
		"delete":   {func(w *world) { must(w, w.Delete(w.Context(), "s")) }, "deleted", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				ctx := t.Context()
				w.applied(all("s"))
				tn := w.after(10*time.Minute, nil)
				must(t, tn.push(ctx))
				if status, err := w.Get(ctx, "s"); err != nil || status.Behind != 500 || status.Runs != 101 {
					t.Fatalf("it is behind with %d, and has run %d (%v)", status.Behind, status.Runs, err)
				}
				from := w.entry("s").behind[0]
				tt.change(w)
				must(t, tn.refresh(ctx))
				_, err := tn.stock(ctx)
				must(t, err)
				w.finish(tn)
				pushed := 0
				for ms := range w.pushed("s") {
					if ms > from.From.UnixMilli() && ms <= from.To.UnixMilli() {
						pushed++
					}
				}
				if want := map[bool]int{true: 500}[tt.runs]; pushed != want {
					t.Errorf("%d were pushed, want %d", pushed, want)
				}
				noted := false
				for _, n := range w.notes("s") {
					if !n.From.IsZero() && n.From.Sub(from.From) <= time.Second && n.To.Equal(from.To) {
						noted = string(n.Word) == tt.word
					}
				}
				if noted == tt.runs {
					t.Errorf("the history says %+v", w.notes("s"))
				}
				if n := w.rdb.Exists(ctx, w.q.Keys().Behind).Val(); n != 0 {
					t.Errorf("Redis has %v", w.rdb.HGetAll(ctx, w.q.Keys().Behind).Val())
				}
			})
		})
	}
}

// A paused schedule pushes none of it, and goes on when it is resumed, as far as catch_up reaches by then.
func TestBehind_whilePaused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s := all("s")
		s.CatchUp = 10 * time.Minute
		w.applied(s)
		tn := w.after(5*time.Minute, nil)
		_, err := w.Pause(ctx, "s", "")
		must(t, err)
		must(t, tn.refresh(ctx))
		w.finish(tn)
		if n := len(w.pushed("s")); n > 1 { // the slot of now
			t.Errorf("%d were pushed while it was paused", n)
		}
		for range 16 {
			time.Sleep(30 * time.Second)
			_, err = w.reg.Heartbeat(ctx, tn.term.Instance, tn.term.Gen, time.Minute, time.Time{}, "")
			must(t, err)
		}
		_, err = w.Resume(ctx, "s")
		must(t, err)
		must(t, tn.refresh(ctx))
		w.finish(tn)
		old := 0
		for _, n := range w.notes("s") {
			if n.Why == "older than catch_up" {
				old += int(n.Count)
			}
		}
		if pushed, _ := w.account("s"); old != 180 || pushed < 120 || pushed > 125 {
			t.Errorf("%d were too old, %d pushed", old, pushed)
		}
	})
}

// max_runs counts what a schedule is behind with, the oldest first, and until ends it.
func TestBehind_withinMaxRuns(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		s := all("s")
		s.MaxRuns = 250
		w.applied(s)
		tn := w.after(4*time.Minute, nil)
		must(t, tn.push(t.Context()))
		tn = w.after(4*time.Minute, tn)
		w.finish(tn)
		pushed, noted := w.account("s")
		if e := w.entry("s"); pushed != 250 || noted != 0 || e.last.Runs != 250 || !e.ended() {
			t.Errorf("%d pushed, %d noted, %+v", pushed, noted, e.last)
		}
	})
}

// A Redis that comes back empty gets back what a schedule was behind with.
func TestBehind_isRestored(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.applied(all("s"))
		tn := w.after(10*time.Minute, nil)
		must(t, tn.push(t.Context()))
		was := w.entry("s")
		known := tn.known()
		known.seen = w.now()
		w.forget()
		must(t, tn.restore(t.Context(), known, nil))
		if e := w.entry("s"); e.owed != was.owed || len(e.behind) == 0 {
			t.Errorf("it is behind with %q, and was with %q", e.owed, was.owed)
		}
	})
}

// A step is never split, so it has few slots if they are large, also those that are encrypted and cannot be opened here.
func TestStep_largePayloads(t *testing.T) {
	t.Parallel()
	open, sealed := every(time.Second), every(time.Second)
	open.Payload = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	sealed.sealed = &task.Sealed{Key: "k1", Data: make([]byte, 1<<20)}
	for name, s := range map[string]Schedule{"open": open, "sealed": sealed} {
		s.Missed = schedule.MissedAll
		e := entryOf(t, s, lastSlot(0))
		e.s.sealed = s.sealed
		m, ok := e.step(sec(1), sec(0), sec(500))
		if n := len(m.step.Push); !ok || n == 0 || n > 4 {
			t.Errorf("%s: a step pushes %d MiB", name, n)
		}
		m, _ = e.step(sec(500), sec(499), sec(500))
		e.follow(&m)
		m, ok = e.repay(sec(500), turnSlots)
		if n := len(m.step.Push); !ok || n == 0 || n > 4 {
			t.Errorf("%s: a step that catches up pushes %d MiB", name, n)
		}
	}
}

// No call that backfills sends more than 4 MiB, also of a payload that cannot be opened here.
func TestBackfill_largeSealedPayloads(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s := every(time.Minute)
		s.Payload = json.RawMessage(`"` + strings.Repeat("x", 600<<10) + `"`)
		must(t, w.leadOver(w.sealing(1, "k1"), "one", "v1", func() []Schedule { return []Schedule{s} }).takeStock(ctx))
		calls := 0
		w.rdb.AddHook(between(func(args []any) error {
			size := 0
			for _, a := range args {
				switch a := a.(type) {
				case string:
					size += len(a)
				case *string:
					size += len(*a)
				case []byte:
					size += len(a)
				}
			}
			if size > 1<<20 {
				calls++
			}
			if size > 5<<20 {
				t.Errorf("%v sends %d bytes", args[0], size)
			}
			return nil
		}))
		time.Sleep(20 * time.Minute)
		n, err := w.backfill(ctx, s.Name, w.now().Add(-12*time.Minute), w.now(), nil)
		if n < 12 || err != nil || calls < 2 {
			t.Errorf("%d were added in %d calls, %v", n, calls, err)
		}
	})
}

// However many slots lie ahead, a change names them in a few words.
func TestAhead_isShort(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]schedule.Rule{
		"a millisecond": schedule.Every(time.Millisecond), "cron": schedule.Cron("* * * * * *", nil), "uneven": schedule.Cron("1,2,5 * * * * *", nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := entryOf(t, Schedule{Rule: r}, lastSlot(600))
			_, runs := e.ahead(sec(0))
			slots := map[int64]bool{}
			for _, run := range runs {
				for at := run.Slot; run.Count > 0; at, run.Count = at.Add(-run.Every), run.Count-1 {
					slots[at.UnixMilli()] = true
				}
			}
			n := 0
			for slot := range e.grid.Between(sec(-2), sec(600)) {
				if n++; !slots[slot.UnixMilli()] {
					t.Fatalf("%v is not listed", slot)
				}
			}
			if n != len(slots) || len(runs) > 30 {
				t.Errorf("%d slots, %d listed in %d runs", n, len(slots), len(runs))
			}
		})
	}
}
