package queue_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// change applies one change, which must find the schedule as it is, and returns its last run.
func (w *world) change(c queue.Change) queue.Last {
	w.Helper()
	if c.Expect == "" {
		s, err := w.q.Schedule(w.Context(), c.Name)
		w.must(err)
		c.Expect = s.Last
	}
	_, moved, err := w.q.Change(w.Context(), 0, []queue.Change{c})
	w.must(err)
	if len(moved) > 0 {
		w.Fatalf("schedule %s had moved", c.Name)
	}
	return w.last(c.Name)
}

func yes(b bool) *bool { return &b }

func TestChange_createsOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		before := w.now().Truncate(time.Millisecond)
		create := queue.Change{Name: "s", Definition: `{"every":"1s"}`, Anchor: queue.Anchor{In: true}, Event: "schedule created", Note: "s@1..2 missed 1"}
		now, moved, err := w.q.Change(t.Context(), 0, []queue.Change{create, create})
		w.must(err)
		equal(t, "moved", moved, []int{1})
		l := w.last("s")
		same(t, "last", l, queue.Last{Rev: l.Rev, Anchor: now})
		if l.Rev < 1 || now.Before(before) {
			t.Errorf("last = %+v, before %v", l, before)
		}
		s, err := w.q.Schedule(t.Context(), "s")
		w.must(err)
		same(t, "definition", s.Definition, create.Definition)
		equal(t, "notes", w.notes(), []string{"s@1..2 missed 1"})
		events, err := w.q.Events(t.Context(), time.Time{}, 0)
		w.must(err)
		same(t, "events", len(events), 1)
		same(t, "event", events[0].Kind+" "+events[0].Fields["schedule"], "schedule created s")
	})
}

func TestChange_revisionsNeverRepeat(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		old := w.schedule("s")
		w.schedule("other")
		seen := map[int64]bool{old.Rev: true}
		for range 3 {
			w.change(queue.Change{Name: "s", Delete: true})
			same(t, "definition", w.rdb.HExists(t.Context(), w.keys.Schedules, "s").Val(), false)
			same(t, "last", w.last("s"), queue.Last{})
			for _, l := range []queue.Last{
				w.schedule("s"), w.change(queue.Change{Name: "s", Pause: yes(true)}), w.change(queue.Change{Name: "s", Definition: "{1}"}),
			} {
				if seen[l.Rev] {
					t.Fatalf("revision %d came twice", l.Rev)
				}
				seen[l.Rev] = true
			}
		}
		// So a step that was computed for the schedule of that name before does nothing to this one.
		a := w.join("a")
		_, moved := a.advance(step("s", old, ms(1000)))
		equal(t, "moved", moved, []int{0})
	})
}

func TestChange_anchors(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		create := func(name string, a queue.Anchor) queue.Last {
			t.Helper()
			return w.change(queue.Change{Name: name, Definition: "{}", Anchor: a})
		}
		at := ms(1_700_000_000_123)
		same(t, "a moment", create("at", queue.Anchor{At: at}).Anchor, at)
		before := w.now().Truncate(time.Millisecond)
		in := create("in", queue.Anchor{In: true}).Anchor
		if in.Before(before) || in.After(w.now()) {
			t.Errorf("now: %v", in)
		}
		aligned := create("aligned", queue.Anchor{Align: time.Hour}).Anchor
		same(t, "on the hour", aligned.UnixMilli()%time.Hour.Milliseconds(), 0)
		if aligned.Before(before) || aligned.After(w.now().Add(time.Hour)) {
			t.Errorf("aligned: %v", aligned)
		}
		same(t, "left alone", w.change(queue.Change{Name: "at", Definition: "{2}"}).Anchor, at)
	})
}

func TestChange_pauseWithdrawsOnlyWhatIsAhead(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		now := w.now().Truncate(time.Second)
		slots := []time.Time{now.Add(-2 * time.Second), now.Add(-time.Second), now.Add(time.Hour), now.Add(2 * time.Hour)}
		a.advance(step("s", w.schedule("s"), slots...))
		var ahead []queue.Ahead
		for i := len(slots) - 1; i >= 0; i-- {
			ahead = append(ahead, queue.Ahead{Slot: slots[i], Count: 1})
		}
		l := w.change(queue.Change{Name: "s", Pause: yes(true), Lane: lane("job"), Ahead: ahead})
		same(t, "paused", l.Paused, true)
		same(t, "runs", l.Runs, 2)
		if l.Slot.Before(now) || l.Slot.After(w.now()) {
			t.Errorf("the slots are settled up to %v, want now", l.Slot)
		}
		equal(t, "what stays", sortedIDs(a.cycle(10, lanesOf("job")).Claimed), []string{task.SlotID("s", slots[0]), task.SlotID("s", slots[1])})
		same(t, "records", w.count(w.keys.Tasks), 2)

		l = w.change(queue.Change{Name: "s", Pause: yes(false), FromNow: true})
		same(t, "paused", l.Paused, false)
		if l.Slot.Before(now) {
			t.Errorf("resumed from %v", l.Slot)
		}
		same(t, "with nothing ahead the slot stays", w.change(queue.Change{Name: "s", Definition: "{3}"}).Slot, l.Slot)
	})
}

// Slots that have run do not run a second time because somebody changes the schedule after the clock was set back; slots that have not are
// withdrawn.
func TestChange_afterTheClockWasSetBackRepeatsNoSlot(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		for ran := range 4 { // of 3 the second waits for another attempt
			w := newWorld(t, rdb)
			a := w.join("a")
			now := w.now().Truncate(time.Second)
			come := now.Add(time.Hour)
			slots := []time.Time{now.Add(20 * time.Minute), now.Add(40 * time.Minute), now.Add(2 * time.Hour)}
			a.advance(step("s", w.schedule("s"), slots...))
			for _, slot := range slots[:min(ran, 2)] {
				w.must(rdb.ZRem(t.Context(), w.keys.Due(lane("job")), task.SlotID("s", slot)).Err())
			}
			if ran == 3 {
				retry := redis.Z{Score: float64(slots[1].UnixMilli() + 1000), Member: task.SlotID("s", slots[1])}
				w.must(rdb.ZAdd(t.Context(), w.keys.Due(lane("job")), retry).Err())
			}
			w.must(rdb.HSet(t.Context(), w.keys.Meta, "beat", come.UnixMilli()).Err()) // written before the clock was set back
			var ahead []queue.Ahead
			for i := len(slots) - 1; i >= 0; i-- {
				ahead = append(ahead, queue.Ahead{Slot: slots[i], Count: 1})
			}
			l := w.change(queue.Change{Name: "s", Definition: "{2}", Lane: lane("job"), Ahead: ahead})
			same(t, "settled up to", l.Slot, [...]time.Time{slots[0].Add(-time.Millisecond), slots[1].Add(-time.Millisecond), come, come}[ran])
			same(t, "due", w.count(w.keys.Due(lane("job"))), int64(max(0, ran-2)))
			same(t, "runs", l.Runs, int64(min(ran, 2)))
			l = w.change(queue.Change{Name: "s", Settled: come.Add(-time.Minute)})
			same(t, "settled later", l.Slot.Before(come.Add(-time.Minute)), false)
		}
	})
}

func TestChange_doesNothingToWhatMoved(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		l := w.schedule("s")
		at := w.now().Add(time.Hour).Truncate(time.Millisecond)
		a.advance(step("s", l, at))
		ahead := []queue.Ahead{{Slot: at, Count: 1}}
		_, moved, err := w.q.Change(t.Context(), 0, []queue.Change{
			{Name: "s", Expect: l.String(), Delete: true, Lane: lane("job"), Ahead: ahead}, {Name: "s2", Definition: "{}"},
		})
		w.must(err)
		equal(t, "moved", moved, []int{0})
		same(t, "pushed", w.count(w.keys.Due(lane("job"))), 1)
		same(t, "the next in the batch", w.last("s2").Rev > 0, true)
		w.change(queue.Change{Name: "s", Delete: true, Lane: lane("job"), Ahead: ahead})
		same(t, "pushed", w.count(w.keys.Due(lane("job"))), 0)
	})
}

func TestChange_onlyInItsEpoch(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		_, moved, err := w.q.Change(t.Context(), a.epoch, []queue.Change{{Name: "s", Definition: "{}"}})
		w.must(err)
		same(t, "moved", len(moved), 0)
		w.join("b")
		_, _, err = w.q.Change(t.Context(), a.epoch, []queue.Change{{Name: "s2", Definition: "{}"}})
		if !errors.Is(err, queue.ErrNotLeader) {
			t.Fatalf("in an old epoch: %v, want ErrNotLeader", err)
		}
		same(t, "schedules", w.count(w.keys.Schedules), 1)
	})
}

func TestChange_isFollowedByVersion(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		v0, err := w.q.SchedulesVersion(t.Context())
		w.must(err)
		same(t, "version of none", v0, 0)
		w.schedule("a")
		w.schedule("b")
		names, v, err := w.q.ChangedSince(t.Context(), 0)
		w.must(err)
		equal(t, "changed", names, []string{"a", "b"})
		w.change(queue.Change{Name: "a", Delete: true})
		names, v2, err := w.q.ChangedSince(t.Context(), v)
		w.must(err)
		equal(t, "changed", names, []string{"a"})
		same(t, "the version rises", v2 > v, true)
		same(t, "and is at least the clock", v2 >= w.now().Add(-time.Minute).UnixMilli(), true)
		names, v3, err := w.q.ChangedSince(t.Context(), v2)
		w.must(err)
		same(t, "changed", len(names), 0)
		same(t, "version", v3, v2)
		w.must(rdb.ZAdd(t.Context(), w.keys.Changed, redis.Z{Score: 1e15, Member: "damaged"}).Err())
		_, v4, err := w.q.ChangedSince(t.Context(), v2)
		w.must(err)
		same(t, "version beside a damaged one", v4, v2)
		list, err := w.q.SchedulesNamed(t.Context(), []string{"b", "a"})
		w.must(err)
		same(t, "b is there", list[0].Definition, "{}")
		same(t, "a is not", list[1].Definition+list[1].Last, "")
	})
}

// A damaged version counts as absent, and hides no later change.
func TestChanged_damagedVersions(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.schedule("a")
		for _, text := range []string{"9 9 9 9 9", "x", "", "9007199254740993", strings.Repeat("9", 400)} {
			w.must(rdb.HSet(t.Context(), w.keys.Meta, "schedules", text).Err())
			w.must(rdb.ZAdd(t.Context(), w.keys.Changed, redis.Z{Score: 9e300, Member: "z"}).Err())
			v, err := w.q.SchedulesVersion(t.Context())
			w.must(err)
			same(t, text, v, 0)
			_, known, err := w.q.ChangedSince(t.Context(), 0)
			w.must(err)
			testredis.Eventually(t, time.Minute, func() bool { return w.now().UnixMilli() > known }, "a later moment, by which the next version counts")
			w.schedule("b" + strconv.Itoa(len(text)))
			names, _, err := w.q.ChangedSince(t.Context(), known)
			w.must(err)
			if !slices.Contains(names, "b"+strconv.Itoa(len(text))) {
				t.Errorf("%q: after %d: %v", text, known, names)
			}
		}
	})
}

// A schedule that is restored from an archive yields to any change that somebody made under its name, also to a deletion.
func TestChange_neverMakesWhatWasThere(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.schedule("there")
		w.schedule("deleted")
		w.change(queue.Change{Name: "deleted", Delete: true, Event: "schedule deleted"})
		var list []queue.Change
		for _, name := range []string{"there", "deleted", "lost"} {
			list = append(list, queue.Change{
				Name: name, Expect: queue.Never, Definition: "{}", Anchor: queue.Anchor{In: true}, Pause: yes(true), Noted: "17 ann\na move", Event: "schedule restored",
			})
		}
		_, moved, err := w.q.Change(t.Context(), 0, list)
		w.must(err)
		equal(t, "moved", moved, []int{0, 1})
		pauses, err := w.q.SchedulesNamed(t.Context(), []string{"there", "deleted", "lost"})
		w.must(err)
		for i, want := range []string{"", "", "17 ann\na move"} {
			same(t, pauses[i].Name, pauses[i].Pause, want)
		}
	})
}
