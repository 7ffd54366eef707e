package onbeat_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// beats counts the runs of each slot that came to their end, and the most runs at once.
type beats struct {
	mu    sync.Mutex
	done  map[string]int
	now   int
	most  int
	takes time.Duration
}

func (b *beats) handle(ctx context.Context, t *task.Task) error {
	b.mu.Lock()
	b.now++
	b.most = max(b.most, b.now)
	b.mu.Unlock()
	var err error
	select {
	case <-time.After(b.takes):
	case <-ctx.Done():
		err = ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now--
	if err == nil {
		b.done[t.ID]++
	}
	return err
}

func (b *beats) snapshot() map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.done)
}

// ran is how many slots between two moments ran, of those whose ID ends as given; none may have run twice.
func (b *beats) ran(t *testing.T, from, to time.Time, suffix string) (n int) {
	t.Helper()
	for id, times := range b.snapshot() {
		name, ok := strings.CutSuffix(id, suffix)
		_, slot, is := task.ParseSlotID(name)
		if !ok || !is || slot.Before(from) || slot.After(to) {
			continue
		}
		if times != 1 {
			t.Errorf("%s ran %d times", id, times)
		}
		n++
	}
	return n
}

// conduct runs a dispatcher with one schedule, each second, until stop.
func (b *beats) conduct(t *testing.T, m *testredis.Miniredis, rule schedule.Rule, drain ...time.Duration) (*onbeat.Dispatcher, func()) {
	t.Helper()
	d := dispatcher(t, m.Dialed(t), onbeat.Config{Namespace: "overlap", Concurrency: 8, Drain: append(drain, 0)[0]})
	if err := d.Handle("job", handlers.Func(b.handle)); err != nil {
		t.Fatal(err)
	}
	if err := d.Schedule("s", rule, "job", nil); err != nil {
		t.Fatal(err)
	}
	return d, run(t, d)
}

// bubble runs a story in virtual time, for each overlap that forbids two at once.
func bubble(t *testing.T, story func(t *testing.T, rule schedule.Rule)) {
	t.Helper()
	t.Parallel()
	for _, overlap := range []schedule.Overlap{schedule.OverlapSkip, schedule.OverlapQueue, schedule.OverlapReplace} {
		t.Run(string(overlap), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				story(t, schedule.Rule{Every: time.Second, Overlap: overlap, Start: schedule.StartAligned})
			})
		})
	}
}

// Backfilled slots run behind slots on time. Each slot runs once, and neither kind drops or cancels the other.
func TestOverlap_backfilledSlotsRunBehindThoseOnTime(t *testing.T) {
	bubble(t, func(t *testing.T, rule schedule.Rule) {
		b := &beats{done: map[string]int{}, takes: 300 * time.Millisecond}
		d, stop := b.conduct(t, testredis.Mini(t), rule)
		defer stop()
		time.Sleep(3*time.Second + 100*time.Millisecond) // in the middle of a run
		began := time.Now().Truncate(time.Second)
		got, err := d.Schedules().Backfill(t.Context(), "s", producer.Backfilling{From: began.Add(-100 * time.Second), To: began.Add(-71 * time.Second)})
		n := got.Added
		if err != nil || n != 30 {
			t.Fatalf("backfilled %d: %v", n, err)
		}
		time.Sleep(9 * time.Second)
		if got := b.ran(t, began.Add(time.Second), began.Add(9*time.Second), ""); got != 8 && got != 9 { // the last may run yet
			t.Errorf("%d of 9 slots on time ran meanwhile: %v", got, slices.Sorted(maps.Keys(b.snapshot())))
		}
		time.Sleep(10 * time.Second)
		if got := b.ran(t, began.Add(time.Second), began.Add(18*time.Second), ""); got != 18 {
			t.Errorf("%d of 18 slots on time ran", got)
		}
		if got := b.ran(t, began.Add(-time.Hour), began, "+backfill"); got != 30 {
			t.Errorf("%d of 30 backfilled slots ran", got)
		}
		if b.most != 1 {
			t.Errorf("%d ran at once", b.most)
		}
		again := producer.Backfilling{From: began.Add(-100 * time.Second), To: began.Add(-70 * time.Second)} // and one more
		if got, err := d.Schedules().Backfill(t.Context(), "s", again); err != nil || got.Slots != 31 || got.Added != 1 {
			t.Errorf("what has run was asked for again: %+v, %v", got, err)
		}
		again.To, again.Again = began.Add(-71*time.Second), true
		if got, err := d.Schedules().By("ann@host").Backfill(t.Context(), "s", again); err != nil || got.Added != 30 {
			t.Errorf("and on purpose: %+v, %v", got, err)
		}
		events, err := d.Queue().Events(t.Context(), time.Time{}, 100)
		if e := events[len(events)-1]; err != nil || e.Kind != "backfill" || e.Fields["by"] != "ann@host" || e.Fields["slots"] != "30" {
			t.Errorf("the last event is %+v, %v", e, err)
		}
	})
}

// The same for slots that were missed in an outage, whether they had been pushed ahead or not.
func TestOverlap_missedSlotsRunBehindThoseOnTime(t *testing.T) {
	for name, outage := range map[string]time.Duration{"pushed ahead": 10 * time.Second, "and not": 40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, rule schedule.Rule) {
				rule.Missed = schedule.MissedAll
				m := testredis.Mini(t)
				b := &beats{done: map[string]int{}, takes: 300 * time.Millisecond}
				_, stop := b.conduct(t, m, rule)
				time.Sleep(3*time.Second + 500*time.Millisecond)
				stop()
				from := time.Now().Truncate(time.Second).Add(time.Second)
				time.Sleep(outage)
				back := time.Now()
				_, stop = b.conduct(t, m, rule)
				defer stop()
				time.Sleep(30 * time.Second)
				to := time.Now().Truncate(time.Second).Add(-time.Second)
				missed, onTime := b.ran(t, from, back, ""), b.ran(t, back, to, "")
				if want := int(back.Sub(from)/time.Second) + 1; missed != want {
					t.Errorf("%d of %d missed slots ran", missed, want)
				}
				if want := int(to.Sub(back)/time.Second) + 1; onTime != want {
					t.Errorf("%d of %d slots on time ran", onTime, want)
				}
				if b.most != 1 {
					t.Errorf("%d ran at once", b.most)
				}
			})
		})
	}
}

// A slot that had begun runs again if the only instance stops and hands it back: it is not missed.
func TestOutage_whatADrainHandedBackRunsAgain(t *testing.T) {
	t.Parallel()
	for _, missed := range []schedule.Missed{schedule.MissedSkip, schedule.MissedOnce, schedule.MissedAll} {
		t.Run(string(missed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := testredis.Mini(t)
				b := &beats{done: map[string]int{}, takes: 20 * time.Second}
				rule := schedule.Rule{Every: 10 * time.Second, Missed: missed, Overlap: schedule.OverlapSkip, Start: schedule.StartAligned}
				time.Sleep(5 * time.Second)
				_, stop := b.conduct(t, m, rule, time.Second)
				time.Sleep(7 * time.Second)
				slot := time.Now().Truncate(10 * time.Second)
				stop()
				b.takes = time.Second
				time.Sleep(15 * time.Second)
				_, stop = b.conduct(t, m, rule, time.Second)
				defer stop()
				time.Sleep(5 * time.Second)
				if got := b.ran(t, slot, slot, ""); got != 1 {
					t.Errorf("the slot that had begun ran %d times to its end: %v", got, b.snapshot())
				}
			})
		})
	}
}
