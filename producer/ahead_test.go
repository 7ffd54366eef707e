package producer

import (
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

func TestAhead_countsTheSlotsToCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t))
	for _, name := range []string{"often", "paused"} {
		w.apply(name, schedule.Every(time.Second))
	}
	w.apply("daily", schedule.Rule{Cron: "30 2 * * *"})
	_, err := w.Pause(w.Context(), "paused")
	must(w, err)
	f, err := NewFollower(w.q.Client(), w.ns)
	must(t, err)
	w.follow(f)
	night := time.Date(2100, 1, 31, 2, 29, 50, 0, time.UTC)
	if got := fmt.Sprint(f.Ahead(night, 5*time.Second, 3)); got != "[5 6 5]" {
		t.Errorf("slots ahead: %s", got)
	}
}

func TestDue_hasTheJitter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t))
	r := schedule.Every(time.Hour)
	r.Jitter = time.Minute
	w.apply("a", r)
	f, err := NewFollower(w.q.Client(), w.ns)
	must(t, err)
	w.follow(f)
	slot := time.Date(2100, 1, 31, 2, 0, 0, 0, time.UTC)
	if got, want := f.Due("a", slot), r.JitterFor("a", slot); !got.Equal(want) || got.Equal(slot) {
		t.Errorf("due %v, want %v", got, want)
	}
	if got := f.Due("b", slot); !got.Equal(slot) {
		t.Errorf("of a schedule that is not there: %v", got)
	}
}

func TestFollower_saysWhichSchedulesAreBehind(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.applied(all("s"))
		w.apply("well", schedule.Every(time.Hour))
		f, err := NewFollower(w.q.Client(), w.ns)
		must(t, err)
		w.follow(f)
		tn := w.after(5*time.Minute, nil)
		e := tn.entries["s"]
		want := e.count(e.behind)
		got, err := f.Behind(ctx)
		must(t, err)
		if len(got) != 1 || got["s"] != want || want == 0 {
			t.Errorf("behind: %v, want %d slots of s", got, want)
		}
		w.finish(tn)
		if got, err := f.Behind(ctx); err != nil || len(got) != 0 {
			t.Errorf("when it has caught up: %v, %v", got, err)
		}
	})
}

func TestFollower_saysSinceWhenNoSlotIsPushed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.apply("s", schedule.Every(time.Second))
		w.apply("paused", schedule.Every(time.Second))
		_, err := w.Pause(ctx, "paused")
		must(t, err)
		tn := w.after(5*time.Second, nil)
		must(t, tn.push(ctx))
		f, err := NewFollower(w.q.Client(), w.ns)
		must(t, err)
		w.follow(f)
		wantSince := func(when string, want time.Time) {
			t.Helper()
			if got, err := f.Unpushed(ctx, w.now().Add(-10*time.Second)); err != nil || !got.Equal(want) {
				t.Errorf("%s: no slot is pushed since %v (%v), want %v", when, got, err, want)
			}
		}
		wantSince("at once", time.Time{})
		first := w.lastOf("s").Slot.Add(time.Second)
		time.Sleep(30 * time.Second)
		wantSince("later", first)
		w.apply("other", schedule.Every(time.Second))
		time.Sleep(12 * time.Second)
		w.follow(f)
		wantSince("with another schedule, whose first slot is later", first)
		must(t, tn.push(ctx))
		wantSince("when it pushes again", time.Time{})
	})
}
