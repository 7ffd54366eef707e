package producer

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/schedule"
)

func skipping(name string, every time.Duration) Schedule {
	return Schedule{Name: name, Task: "job", Rule: schedule.Rule{Every: every, Missed: schedule.MissedSkip}}
}

// The lease of a leader that died still runs, a client changes a payload, and the next leader takes a while.
func TestChange_whatItTookBackIsLateAndNotMissed(t *testing.T) {
	t.Parallel()
	for _, took := range []time.Duration{900 * time.Millisecond, 1900 * time.Millisecond, 2400 * time.Millisecond} {
		t.Run(took.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, w *world) {
				ctx := t.Context()
				s := skipping("s", 100*time.Millisecond)
				_, err := w.Apply(ctx, s)
				must(t, err)
				one := w.lead("one", "v1", nil)
				one.cfg.Horizon, one.open = 2*time.Second, true
				must(t, one.takeStock(ctx))
				must(t, one.push(ctx))
				time.Sleep(350 * time.Millisecond)
				s.Payload = json.RawMessage(`1`)
				_, err = w.Apply(ctx, s)
				must(t, err)
				time.Sleep(took)
				two := w.lead("two", "v1", nil)
				two.cfg.Horizon, two.open = 2*time.Second, true
				must(t, two.takeStock(ctx))
				must(t, two.push(ctx))
				if pushed, noted := w.account("s"); noted != 0 || pushed < 30 {
					t.Errorf("%d pushed, %d noted", pushed, noted)
				}
			})
		})
	}
}

// However long the leader took, the slots that had been pushed ahead of the change run, and policy decides on the rest.
func TestChange_whatItTookBackIsLateAfterAnyTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		s := skipping("s", 100*time.Millisecond)
		_, err := w.Apply(ctx, s)
		must(t, err)
		one := w.lead("one", "v1", nil)
		one.cfg.Horizon, one.open = 2*time.Second, true
		must(t, one.takeStock(ctx))
		must(t, one.push(ctx))
		reached := w.entry("s").last.Slot
		s.Payload = json.RawMessage(`1`)
		_, err = w.Apply(ctx, s)
		must(t, err)
		time.Sleep(20 * time.Second)
		must(t, one.refresh(ctx))
		must(t, one.push(ctx))
		w.account("s")
		for slot := range w.entry("s").grid.Between(time.Time{}, reached) {
			if !w.pushed("s")[slot.UnixMilli()] {
				t.Errorf("%v was pushed ahead, taken back and not pushed again", slot)
			}
		}
		if notes := w.notes("s"); len(notes) == 0 {
			t.Error("nothing was missed: nothing was put to the test")
		}
	})
}

// A leader pushes within its horizon of a slot's time, or policy decides: a pause of its process is no outage.
func TestPush_lateWithinTheHorizonIsNotMissed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		_, err := w.Apply(ctx, skipping("s", 100*time.Millisecond))
		must(t, err)
		tn := w.lead("one", "v1", nil)
		tn.cfg.Horizon, tn.open = 2*time.Second, true
		must(t, tn.takeStock(ctx))
		must(t, tn.push(ctx))
		time.Sleep(4 * time.Second)
		must(t, tn.push(ctx))
		if _, noted := w.account("s"); noted != 0 {
			t.Errorf("%d slots were missed by a leader that was late by less than its horizon", noted)
		}
		time.Sleep(7 * time.Second)
		must(t, tn.push(ctx))
		if _, noted := w.account("s"); noted == 0 {
			t.Error("a leader that was late by more than its horizon missed nothing")
		}
	})
}

// slow delays commands whose first key is the given one, by their length.
func slow(key string, perArg time.Duration) between {
	return func(args []any) error {
		if len(args) > 3 && (args[1] == key || args[3] == key) {
			time.Sleep(time.Duration(len(args)) * perArg)
		}
		return nil
	}
}

// The time in which a leader reads many schedules does not count as a time without a leader.
func TestTakeStock_takesNoSlotsTime(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		_, err := w.Apply(ctx, skipping("s", 100*time.Millisecond))
		must(t, err)
		last := w.entry("s").last
		last.Slot, last.Rev = last.Anchor, 1 // as if it had been changed long ago
		must(t, w.rdb.HSet(ctx, w.q.Keys().Last, "s", last.String()).Err())
		time.Sleep(time.Second)
		tn := w.lead("one", "v1", nil)
		tn.cfg.Horizon, tn.open = 2*time.Second, true
		w.rdb.AddHook(slow(w.q.Keys().Schedules, time.Second))
		must(t, tn.takeStock(ctx))
		if w.now().Sub(tn.began) < 5*time.Second {
			t.Fatal("it was fast: nothing was put to the test")
		}
		must(t, tn.push(ctx))
		if n, notes := len(w.pushed("s")), w.notes("s"); len(notes) != 0 || n < 50 {
			t.Errorf("%d pushed, noted %v", n, notes)
		}
	})
}

// A rollout that changes many schedules takes a leader longer than it pushes ahead: it pushes meanwhile.
func TestDeclare_pushesWhileItDeclares(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		list := make([]Schedule, 8*declareChunk)
		for i := range list {
			list[i] = skipping(fmt.Sprintf("s%04d", i), time.Second)
		}
		lead := func(release, payload string) *term {
			declared := slices.Clone(list)
			for i := range declared {
				declared[i].Payload = json.RawMessage(payload)
			}
			tn := w.lead(release, release, func() []Schedule { return declared })
			tn.cfg.Horizon, tn.open = 2*time.Second, true
			must(t, tn.takeStock(ctx))
			return tn
		}
		must(t, lead("v1", "1").push(ctx))
		w.rdb.AddHook(slow(w.q.Keys().Schedules, 300*time.Microsecond))
		began := w.now()
		two := lead("v2", "2")
		now := w.now()
		took := now.Sub(began)
		if took < 5*time.Second {
			t.Fatalf("it took %v: nothing was put to the test", took)
		}
		for i := range list {
			if behind := now.Sub(two.entries[list[i].Name].last.Slot); behind > took/2 {
				t.Fatalf("as it has declared, after %v, %s is pushed up to %v ago", took, list[i].Name, behind)
			}
		}
		must(t, two.push(ctx))
		must(t, w.q.History(ctx, time.Time{}, func(e history.Entry) error {
			for _, n := range e.Notes {
				if n.Word != "was" {
					t.Errorf("%+v", n)
				}
			}
			return nil
		}))
	})
}
