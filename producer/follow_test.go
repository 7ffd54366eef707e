package producer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// note writes an entry of the history, as if it had been written at a moment.
func (w *world) note(at time.Time, lines ...string) {
	w.Helper()
	for i, line := range lines {
		must(w, w.rdb.XAdd(w.Context(), &redis.XAddArgs{
			Stream: w.q.Keys().History, ID: fmt.Sprintf("%d-%d", at.UnixMilli(), i+1), Values: []any{"runs", line},
		}).Err())
	}
}

func (w *world) follow(f *Follower) Following {
	w.Helper()
	got, err := f.Follow(w.Context())
	must(w, err)
	return got
}

// ratios are how stale schedules are at a moment, to a tenth: a schedule without a success counts from when it was made, which is a moment after the test began.
func ratios(f *Follower, at time.Time) map[string]float64 {
	all := map[string]float64{}
	for _, s := range f.found(at).Stale {
		all[s.Schedule] = math.Round(10*s.Ratio) / 10
	}
	return all
}

func TestFollow_countsFatesSinceItWasMade(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		now := w.now()
		w.note(now.Add(-time.Minute), "s@1000 done 1 1000")
		f, err := NewFollower(w.q.Client(), w.ns)
		must(t, err)
		f.made = f.made.Add(-time.Second)
		if got := w.follow(f).Fates; len(got) != len(Fates()) || got[history.Done] != 0 {
			t.Errorf("%v", got)
		}
		w.note(now.Add(time.Millisecond), "s@2000 done 1 2000", "s@3000 failed 1 3000", "s@4000 returned 1 3000", "s@5000..9000 missed 5 outage",
			"s@10000 skipped overlap", "s!1 done 1 1000", "mail done 1 1000", "s@1..2 was 0 every 1s")
		got := w.follow(f).Fates
		if got[history.Done] != 1 || got[history.Missed] != 5 || got[history.Skipped] != 1 || len(got) != len(Fates()) {
			t.Errorf("%v", got)
		}
		if again := w.follow(f).Fates; again[history.Missed] != 5 {
			t.Errorf("counted twice: %v", again)
		}
	})
}

func TestFollow_saysHowStaleEachScheduleIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t))
	now := w.now()
	for _, name := range []string{"before", "since", "triggered", "never", "ended", "paused"} {
		r := schedule.Every(time.Minute)
		if name == "ended" {
			r.MaxRuns = 3
		}
		w.apply(name, r)
	}
	_, err := w.Pause(w.Context(), "paused", "")
	must(w, err)
	w.note(now.Add(-30*time.Second), fmt.Sprintf("before@%d done 1 1000", now.UnixMilli()))
	f, err := NewFollower(w.q.Client(), w.ns)
	must(t, err)
	if got := ratios(f, now); len(got) != 0 {
		t.Errorf("it says %v before it has read anything", got)
	}
	got := w.follow(f)
	if got.Active != 5 || got.Paused != 1 {
		t.Errorf("%d active, %d paused", got.Active, got.Paused)
	}
	w.note(now.Add(4*time.Minute), fmt.Sprintf("since@%d done 1 1000", now.UnixMilli()), fmt.Sprintf("never@%d failed 1 1000", now.UnixMilli()),
		"triggered!1 done 1 1000")
	w.follow(f)
	want := map[string]float64{"before": 5, "never": 5, "since": 1, "triggered": 1}
	if got := ratios(f, now.Add(5*time.Minute)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFollow_takesInWhatChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t))
	w.apply("a", schedule.Every(time.Minute))
	w.apply("b", schedule.Every(time.Minute))
	f, err := NewFollower(w.q.Client(), w.ns)
	must(t, err)
	w.follow(f)
	w.apply("c", schedule.Every(time.Hour))
	_, err = w.Pause(w.Context(), "a", "")
	must(w, err)
	must(w, w.Delete(w.Context(), "b"))
	if got := w.follow(f); got.Active != 1 || got.Paused != 1 || got.Stale[0].Schedule != "c" {
		t.Errorf("%+v", got)
	}
	// Another program overwrote a key: all is read anew, and the known successes stay.
	f.known["c"].success = w.now().Add(time.Hour)
	must(w, w.rdb.ZAdd(w.Context(), w.q.Keys().Changed, redis.Z{Score: float64(f.version + 1), Member: queue.Mended}).Err())
	if got := w.follow(f); got.Active != 1 || got.Stale[0].Schedule != "c" || f.known["c"].success.IsZero() {
		t.Errorf("%+v", got)
	}
}

// The history is read back a page at a time, until each success is known. A schedule without one is as stale as that reaches.
func TestFollow_looksBackAPageAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Mini(t).Dialed(t))
	now := w.now()
	w.apply("old", schedule.Every(time.Hour))
	w.apply("never", schedule.Every(time.Hour))
	w.note(now.Add(-2*time.Hour), "old@1000 done 1 1000")
	for i := range lookPage {
		w.note(now.Add(-time.Hour+time.Duration(i)*time.Second), "other@1000 done 1 1000")
	}
	f, err := NewFollower(w.q.Client(), w.ns)
	must(t, err)
	if got := w.follow(f); len(got.Stale) != 0 {
		t.Errorf("%+v after the first page", got.Stale)
	}
	if got := w.follow(f); len(got.Stale) != 2 || f.known["old"].success.IsZero() {
		t.Errorf("%+v after all pages", got.Stale)
	}
	if f.looked != mostLatest || !f.oldest.Equal(now.Add(-2*time.Hour).Truncate(time.Millisecond)) {
		t.Errorf("looked at %d, back to %s", f.looked, f.oldest)
	}
}

// By night a schedule of working hours is not stale; nor is it in the morning, when its first slot has not ended yet.
func TestFollow_gapsOfANightDoNotCount(t *testing.T) {
	t.Parallel()
	s := &Schedule{Name: "s", Rule: schedule.Cron("0 9-17 * * *", time.UTC), Task: "a"}
	day := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	grid, err := s.Grid(day)
	if err != nil {
		t.Fatal(err)
	}
	f := &followed{entry: &entry{s: s, grid: grid, last: queue.Last{Anchor: day}}, success: day.Add(17*time.Hour + time.Minute)}
	for _, tt := range []struct {
		at   time.Duration
		want float64
	}{
		{17*time.Hour + 30*time.Minute, 29. / 60 / 16}, {24 * time.Hour, 419. / 60 / 16}, {33*time.Hour + time.Minute, 1}, {34*time.Hour + time.Minute, 17},
	} {
		got, ok := f.stale(day.Add(tt.at), true, day)
		if !ok || math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("at %s: %v, %v, want %v", tt.at, got, ok, tt.want)
		}
	}
}

// A gap is told once if Redis dropped entries before they were read.
func TestFollow_tellsWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		f, err := NewFollower(w.q.Client(), w.ns)
		must(t, err)
		f.made = f.made.Add(-time.Second)
		w.follow(f)
		now := w.now()
		for i, want := range []int64{0, 0, 1, 1, 2} {
			switch i {
			case 2: // the first is gone, with all between
				must(t, rdb.XTrimMaxLen(t.Context(), w.q.Keys().History, 0).Err())
			case 4: // Redis came back empty
				must(t, rdb.Del(t.Context(), w.q.Keys().History).Err())
			}
			w.note(now.Add(time.Duration(i+1)*time.Millisecond), "s@2000 done 1 2000")
			if got := w.follow(f); got.Gaps != want || got.Fates[history.Done] != int64(i+1) {
				t.Errorf("%d: %+v, want %d gaps", i, got, want)
			}
		}
	})
}
