package queue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestParseBehind_readsWhatStringWrote(t *testing.T) {
	t.Parallel()
	span := func(from, to int64) queue.Span { return queue.Span{From: ms(from), To: ms(to)} }
	for _, b := range []queue.Behind{nil, {span(4, 9)}, {span(1, 2), span(5, 1_700_000_000_000)}} {
		got, err := queue.ParseBehind(b.String())
		if err != nil || !slices.Equal(got, b) {
			t.Errorf("%q: got %+v, %v", b, got, err)
		}
	}
	for _, text := range []string{"x", "1", "1 x", "x 1", "1 2 3", "1  2", "1 2 "} {
		if _, err := queue.ParseBehind(text); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// behind is what Redis says that a schedule is behind with.
func (w *world) behind(name string) string {
	w.Helper()
	s, err := w.q.Schedule(w.Context(), name)
	w.must(err)
	return s.Behind
}

func TestAdvance_comparesWhatAScheduleIsBehindWith(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.schedule("s")
		with := func(behind, remains string, slots ...time.Time) (moved int) {
			t.Helper()
			s := step("s", w.last("s"), slots...)
			s.Behind, s.Remains = behind, remains
			_, list := a.advance(s)
			return len(list)
		}
		same(t, "moved", with("", "one", ms(1000)), 0)
		same(t, "behind", w.behind("s"), "one")
		same(t, "moved: it is behind already", with("", "two", ms(2000)), 1)
		same(t, "moved: it was read before that", with("zero", "", ms(2000)), 1)
		same(t, "pushed", w.count(w.keys.Due(lane("job"))), 1)
		same(t, "moved: what it is behind with is no matter", with("zero", "zero", ms(2000)), 0)
		same(t, "moved", with("one", "two", ms(3000)), 0)
		same(t, "behind", w.behind("s"), "two")
		same(t, "moved", with("two", ""), 0)
		same(t, "behind", w.behind("s"), "")
	})
}

func TestChange_endsWhatAScheduleIsBehindWith(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.schedule("s")
		late := func() {
			s := step("s", w.last("s"))
			s.Remains = "late"
			a.advance(s)
		}
		late()
		w.change(queue.Change{Name: "s", Definition: "{1}"})
		w.change(queue.Change{Name: "s", Pause: yes(true)})
		same(t, "left alone", w.behind("s"), "late")
		_, moved, err := w.q.Change(t.Context(), 0, []queue.Change{{Name: "s", Expect: w.last("s").String(), Delete: true, Behind: "later"}})
		w.must(err)
		equal(t, "moved: it is behind with something else", moved, []int{0})
		w.change(queue.Change{Name: "s", Definition: "{2}", Behind: "late"})
		same(t, "ended", w.behind("s"), "")
		late()
		w.change(queue.Change{Name: "s", Delete: true, Behind: "late"})
		same(t, "ended", w.count(w.keys.Behind), 0)
		w.must(rdb.HSet(t.Context(), w.keys.Behind, "s", "of another life").Err())
		w.schedule("s")
		same(t, "made anew", w.behind("s"), "")
		w.change(queue.Change{Name: "s", Delete: true})
		w.change(queue.Change{Name: "s", Definition: "{}", Remains: "as it was"})
		same(t, "restored", w.behind("s"), "as it was")
	})
}

// Slots that lie so close that no command could name each are taken back too.
func TestChange_takesBackRunsOfSlots(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		from := w.now().Add(time.Hour).Truncate(time.Second)
		var slots []time.Time
		for i := range 300 {
			slots = append(slots, from.Add(time.Duration(i)*time.Millisecond))
		}
		slots = append(slots, from.Add(time.Minute))
		a.advance(step("s", w.schedule("s"), slots...))
		ahead := queue.RunsOf([]time.Time{
			slots[300], slots[299], slots[298], slots[297], // and one that is not there, and some that stay
			from.Add(-time.Second),
		})
		ahead[1].Count += 200
		l := w.change(queue.Change{Name: "s", Pause: yes(true), Lane: lane("job"), Ahead: ahead})
		same(t, "due", int64(w.count(w.keys.Due(lane("job")))), l.Runs)
		same(t, "runs", l.Runs, 301-1-3-200)
	})
}
