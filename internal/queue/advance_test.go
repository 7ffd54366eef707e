package queue_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// schedule makes a schedule and returns its last run.
func (w *world) schedule(name string) queue.Last {
	w.Helper()
	_, moved, err := w.q.Change(w.Context(), 0, []queue.Change{{
		Name: name, Definition: "{}", Anchor: queue.Anchor{In: true}, Event: "schedule created",
	}})
	w.must(err)
	if len(moved) > 0 {
		w.Fatalf("schedule %s is there already", name)
	}
	return w.last(name)
}

func (w *world) last(name string) queue.Last {
	w.Helper()
	s, err := w.q.Schedule(w.Context(), name)
	w.must(err)
	l, err := queue.ParseLast(s.Last)
	w.must(err)
	return l
}

func slotTask(name string, slot time.Time) *task.Task {
	return &task.Task{ID: task.SlotID(name, slot), Type: "job", Schedule: name, Slot: slot}
}

// step pushes slots of a schedule.
func step(name string, from queue.Last, slots ...time.Time) queue.Step {
	to := from
	s := queue.Step{Name: name, Expect: from.String()}
	for _, slot := range slots {
		to.Slot, to.Runs = slot, to.Runs+1
		s.Push = append(s.Push, queue.Push{Task: slotTask(name, slot), Due: slot})
	}
	s.Becomes = to.String()
	return s
}

func (i *inst) advance(steps ...queue.Step) (dropped int, moved []int) {
	i.Helper()
	_, dropped, moved, err := i.q.Advance(i.Context(), i.term(), steps)
	i.must(err)
	return dropped, moved
}

func drop(name string, slot, due time.Time) queue.Drop {
	return queue.Drop{Place: queue.Place{Lane: lane("job"), ID: task.SlotID(name, slot)}, Due: due}
}

func ms(n int64) time.Time { return time.UnixMilli(n).UTC() }

// Promise 1: a slot is pushed at most once, ever, however many believe that they lead.
func TestPromise1_aSlotIsPushedOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		s := step("s", w.schedule("s"), ms(1000))
		_, moved := a.advance(s)
		same(t, "moved before", len(moved), 0)
		a.cycle(1, lanesOf("job"), allFinished(a.claim(1, lanesOf("job")))...)

		// The reply was lost, or another read the same last run: asked again, it changes nothing.
		_, moved = a.advance(s)
		equal(t, "moved", moved, []int{0})
		same(t, "pushed again", w.count(w.keys.Due(lane("job"))), 0)

		// An old leader that was asleep does not get through, not even with the last run as it is now.
		b := w.join("b")
		_, _, _, err := w.q.Advance(t.Context(), a.term(), []queue.Step{step("s", w.last("s"), ms(2000))})
		if !errors.Is(err, queue.ErrNotLeader) {
			t.Fatalf("advance by the old leader: %v, want ErrNotLeader", err)
		}
		old := b.term()
		old.Epoch--
		if _, _, _, err = w.q.Advance(t.Context(), old, []queue.Step{step("s", w.last("s"), ms(2000))}); !errors.Is(err, queue.ErrNotLeader) {
			t.Fatalf("advance in an old epoch: %v, want ErrNotLeader", err)
		}
		w.must(rdb.ZRem(t.Context(), w.keys.Instances, "b").Err())
		if _, _, _, err = w.q.Advance(t.Context(), b.term(), []queue.Step{step("s", w.last("s"), ms(2000))}); !errors.Is(err, queue.ErrFenced) {
			t.Fatalf("advance after the lease: %v, want ErrFenced", err)
		}
		same(t, "pushed", w.count(w.keys.Due(lane("job"))), 0)
		same(t, "runs", w.last("s").Runs, 1)
	})
}

func TestAdvance_movesManySchedulesAtOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		const n = 2500
		var changes []queue.Change
		for i := range n {
			changes = append(changes, queue.Change{Name: fmt.Sprintf("s%04d", i), Definition: "{}", Anchor: queue.Anchor{At: ms(int64(i + 1))}})
		}
		_, moved, err := w.q.Change(t.Context(), 0, changes)
		w.must(err)
		same(t, "moved", len(moved), 0)
		var steps []queue.Step
		seen := map[string]bool{}
		version, err := w.q.Schedules(t.Context(), func(part []queue.Stored) error {
			for _, s := range part {
				l, err := queue.ParseLast(s.Last)
				if err != nil {
					return err
				}
				if !seen[s.Name] {
					steps = append(steps, step(s.Name, l, l.Anchor))
				}
				seen[s.Name] = true
			}
			return nil
		})
		w.must(err)
		same(t, "schedules", len(steps), n)
		latest, err := w.q.SchedulesVersion(t.Context())
		w.must(err)
		same(t, "version", version, latest)
		for _, i := range []int{0, 999, 1000, 2499} { // these moved
			steps[i].Expect = "1 1 1 1 0"
		}
		_, moved = a.advance(steps...)
		equal(t, "moved", moved, []int{0, 999, 1000, 2499})
		same(t, "due", w.count(w.keys.Due(lane("job"))), n-4)
		first := a.claim(1, lanesOf("job"))[0]
		want := steps[slices.IndexFunc(steps, func(s queue.Step) bool { return s.Name == first.Schedule })]
		same(t, "due at its slot", first.Due, want.Push[0].Due)
	})
}

func TestAdvance_dropsWhatWasNotClaimed(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		a.advance(step("s", w.schedule("s"), ms(1000), ms(2000), ms(3000)))
		a.claim(1, lanesOf("job"))
		l := w.last("s")
		s := step("s", l, ms(9000))
		s.Note = "s@4000..8000 missed 5 outage"
		for _, at := range []int64{1000, 2000, 3000} {
			s.Drop = append(s.Drop, drop("s", ms(at), ms(at)))
		}
		dropped, _ := a.advance(s)
		same(t, "dropped", dropped, 2)
		equal(t, "notes", w.notes(), []string{"s@4000..8000 missed 5 outage", "s@2000 missed outage", "s@3000 missed outage"})
		same(t, "records", w.count(w.keys.Tasks), 2)
		same(t, "slot", w.last("s").Slot, ms(9000))
		same(t, "runs: those that were dropped did not run", w.last("s").Runs, 2)
		// A slot that waits for another attempt has begun, and stays.
		retry := step("s", w.last("s"))
		retry.Drop = []queue.Drop{drop("s", ms(9000), ms(8999))}
		dropped, _ = a.advance(retry)
		same(t, "dropped of those put back", dropped, 0)
		// A step that had moved drops nothing either.
		s.Drop = []queue.Drop{drop("s", ms(9000), ms(9000))}
		dropped, _ = a.advance(s)
		same(t, "dropped by a step that moved", dropped, 0)
	})
}

func TestAdvance_pushesNowAndLater(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		l := w.schedule("s")
		at := w.now().Add(time.Hour).Truncate(time.Millisecond)
		s := step("s", l, ms(1000), at)
		s.Push[0].Due = time.Time{} // now, by the clock of Redis
		before := w.now().UnixMilli()
		a.advance(s)
		if got := int64(w.score(w.keys.Due(lane("job")), "s@1000")); got < before || got > w.now().UnixMilli() {
			t.Errorf("due %d, want now", got)
		}
		r := a.cycle(10, lanesOf("job"))
		same(t, "claimed", len(r.Claimed), 1)
		same(t, "slot", r.Claimed[0].Slot, ms(1000))
		same(t, "next due", r.NextDue, at)
	})
}

func TestAdvance_splitsLargeSteps(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		var steps []queue.Step
		for i := range 3 {
			name := fmt.Sprint("s", i)
			var slots []time.Time
			for k := range 900 {
				slots = append(slots, ms(int64(1000+k)))
			}
			s := step(name, w.schedule(name), slots...)
			for j := range s.Push {
				s.Push[j].Task.Payload = []byte(strings.Repeat("x", 100))
			}
			steps = append(steps, s)
		}
		steps[1].Expect = "nonsense"
		_, moved := a.advance(steps...)
		equal(t, "moved", moved, []int{1})
		same(t, "due", w.count(w.keys.Due(lane("job"))), 1800)
		same(t, "nothing to do", len(w.notes()), 0)
	})
}
