package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// inLine is a task of the key k, of which five may run, that is due in the order of its number.
func inLine(n int, typ string) *task.Task {
	return task.New(typ, []byte("x"), task.ID(fmt.Sprint(typ, n)), task.Key("k", 5), task.At(time.UnixMilli(lately(int64(n)))))
}

// Tasks of a key in a lane that no instance reads any more do not hold up those in other lanes: as many run as may, to the
// last.
func TestCycle_aLaneThatNobodyReadsHoldsUpNoKey(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		old := w.join("old")
		for n := range 5 {
			w.add(inLine(n, "job"))
		}
		first := old.claim(5, lanesOf("job", "gone"))
		for n := 5; n < 45; n += 2 {
			w.add(inLine(n, "gone"), inLine(n+1, "job"))
		}
		same(t, "claimed", len(old.cycle(10, lanesOf("job", "gone")).Claimed), 0)
		same(t, "wait", w.count(w.keys.Held), 40)

		a := w.join("a") // reads only the one lane from now on
		lanes := append(lanesOf("job"), queue.LaneClaim{Lane: lane("gone"), Limit: -1})
		r := a.cycle(10, lanes)
		same(t, "claimed", len(r.Claimed), 0)
		same(t, "by who may not claim", len(old.cycle(10, lanesOf("job", "gone"), allFinished(first)...).Claimed), 0)
		runs := a.claim(5, lanes)
		for left := 15; left > 0; left-- {
			one := left % len(runs)
			r = a.cycle(10, lanes, finished(runs[one]))
			same(t, fmt.Sprintf("claimed, with %d left", left), len(r.Claimed), 1)
			runs = append(slices.Delete(runs, one, one+1), r.Claimed...)
			same(t, "active", w.rdb.HGet(t.Context(), w.keys.Active, "k:k").Val(), "5")
		}
		a.cycle(10, lanes, allFinished(runs)...)
		same(t, "active", w.count(w.keys.Active), 0)
		same(t, "still there for who reads them", w.count(w.keys.Tasks), 20)
		same(t, "and due", w.count(w.keys.Due(lane("gone"))), 20)
	})
}

// Several runs of a key that end at once make way for as many.
func TestCycle_aKeyIsFilledAtOnce(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		for n := range 12 {
			w.add(inLine(n, "job"))
		}
		r := a.cycle(20, lanesOf("job"))
		same(t, "claimed", len(r.Claimed), 5)
		r = a.cycle(20, lanesOf("job"), allFinished(r.Claimed)...)
		equal(t, "claimed", ids(r.Claimed), []string{"job5", "job6", "job7", "job8", "job9"})
		// A worker is free, and none for those that are let go: they lose nothing.
		a.cycle(0, lanesOf("job"), allFinished(r.Claimed)...)
		equal(t, "claimed", ids(a.cycle(20, lanesOf("job")).Claimed), []string{"job10", "job11"})
	})
}

// A lane that the call did not name is asked for; those behind its tasks are not kept waiting.
func TestCycle_namesTheKeysOfLanesThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		w.add(keyed("runs", "k", 1, task.Wait, 1))
		one := a.claim(1, lanesOf("job"))[0]
		fresh := keyed("fresh", "k", 1, task.Wait, 2)
		fresh.Type = "fresh"
		w.add(fresh, keyed("last", "k", 1, task.Wait, 3))
		a.cycle(5, lanesOf("job", "fresh"))
		same(t, "wait", w.count(w.keys.Held), 2)

		r := a.cycle(5, lanesOf("job"), finished(one))
		equal(t, "claimed", ids(r.Claimed), []string{"last"})
		r = a.cycle(5, lanesOf("job"), finished(r.Claimed[0]))
		equal(t, "claimed", ids(r.Claimed), nil)
		equal(t, "owed", r.Owed, []string{"k"})
		again := a.request(5, lanesOf("job", "fresh"))
		again.Owed = r.Owed
		r, err := w.q.Cycle(t.Context(), again)
		w.must(err)
		equal(t, "claimed", ids(r.Claimed), []string{"fresh"})
		equal(t, "owed", r.Owed, nil)
	})
}

// When the one whose turn it was is cancelled, the next may lie in another lane.
func TestCancel_passesTheTurnOnToAnotherLane(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		w.add(keyed("1", "k", 1, task.Wait, 1))
		one := a.claim(1, lanesOf("job"))[0]
		other := keyed("3", "k", 1, task.Wait, 3)
		other.Type = "other"
		w.add(keyed("2", "k", 1, task.Wait, 2), other)
		a.cycle(5, lanesOf("job", "other"))
		a.cycle(0, lanesOf("job"), finished(one)) // knows nothing of the other lane
		same(t, "wait", w.count(w.keys.Held), 1)
		same(t, "state", w.cancel("2", false), task.Due)
		equal(t, "then", ids(a.cycle(5, lanesOf("job", "other")).Claimed), []string{"3"})
	})
}
