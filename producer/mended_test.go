package producer

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// setAside overwrites a key, and makes an instance other than the leader set it aside.
func (w *world) setAside(key string) {
	w.Helper()
	must(w, w.rdb.Set(w.Context(), key, "not ours", 0).Err())
	_, err := w.q.Mend(w.Context(), nil)
	must(w, err)
}

// takesIn has a leader look at what was changed.
func (w *world) takesIn(tn *term) {
	w.Helper()
	must(w, tn.insist(w.Context(), tn.refresh))
	if tn.halves {
		must(w, tn.insist(w.Context(), tn.takeStock))
	}
}

func (w *world) lastOf(name string) queue.Last {
	w.Helper()
	st, err := w.q.Schedule(w.Context(), name)
	must(w, err)
	last, err := queue.ParseLast(st.Last)
	must(w, err)
	return last
}

// If any instance sets a key of the schedules aside, the leader brings back what it knows: each schedule's definition and last
// run. Slots that ran do not run again, and runs are not counted twice.
func TestMended_theLeaderBringsBackWhatItKnows(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]func(k queue.Keys) string{
		"definitions": func(k queue.Keys) string { return k.Schedules }, "last runs": func(k queue.Keys) string { return k.Last },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				w := newWorld(t, rdb)
				w.apply("a", schedule.Every(50*time.Millisecond))
				w.apply("paused", schedule.Every(50*time.Millisecond))
				_, err := w.Pause(t.Context(), "paused", "")
				must(t, err)
				tn := w.lead("a", "", nil)
				must(t, tn.insist(t.Context(), tn.takeStock))
				must(t, tn.insist(t.Context(), tn.push))
				had, paused := w.lastOf("a"), w.lastOf("paused")
				w.setAside(key(w.q.Keys()))
				w.apply("new", schedule.Every(time.Minute)) // so that there is a later version
				w.takesIn(tn)
				asItWas := func() {
					is := w.lastOf("a")
					runs := int64(is.Slot.Sub(is.Anchor)/(50*time.Millisecond)) + 1
					for _, n := range w.notes("a") { // on a busy machine some may come too late
						if n.Word == "missed" {
							runs -= max(n.Count, 1)
						}
					}
					if !is.Anchor.Equal(had.Anchor) || is.Runs != runs {
						t.Errorf("%v, was %v: want %d runs", is, had, runs)
					}
				}
				asItWas()
				if is := w.lastOf("paused"); !is.Paused || !is.Anchor.Equal(paused.Anchor) {
					t.Errorf("paused: %+v", is)
				}
				testredis.Eventually(t, patience, func() bool {
					must(t, tn.insist(t.Context(), tn.push))
					return w.lastOf("a").Slot.After(had.Slot)
				}, "it goes on")
				asItWas()
				w.account("a")
			})
		})
	}
}

// A schedule whose last run no instance knows begins anew, on the grid of its rule.
func TestMended_nobodyKnowsHowFarItWas(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		r := schedule.Every(time.Minute)
		r.Start = schedule.StartAligned
		w.apply("aligned", r)
		w.setAside(w.q.Keys().Last)
		tn := w.lead("a", "", nil)
		must(t, tn.insist(t.Context(), tn.takeStock))
		if at := w.had("aligned").Anchor; at.UnixMilli()%60_000 != 0 {
			t.Errorf("slot zero is %v", at)
		}
	})
}
