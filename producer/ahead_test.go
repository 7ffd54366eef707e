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
	_, err := w.Pause(w.Context(), "paused", "")
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
