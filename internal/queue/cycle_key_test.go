package queue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// keyed is a task with a key, due so many milliseconds after 1970: long ago, in a fixed order.
func keyed(id, key string, limit int, policy task.Overlap, ms int64) *task.Task {
	t := job(id, task.Key(key, limit), task.At(time.UnixMilli(ms)))
	t.Overlap = policy
	return t
}

func TestCycle_keyWaits(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		w.add(keyed("1", "k", 2, task.Wait, 1), keyed("2", "k", 2, task.Wait, 2), keyed("3", "k", 2, task.Wait, 3),
			keyed("10", "k", 2, task.Wait, 10), keyed("other", "k2", 1, task.Wait, 4), job("free"))
		r := a.cycle(10, lanesOf("job"))
		equal(t, "claimed", ids(r.Claimed), []string{"1", "2", "other", "free"})
		same(t, "skipped", r.Skipped, 0)
		same(t, "held", w.count(w.keys.Held), 2)
		same(t, "nothing to come back for", r.NextDue, time.Time{})

		r = a.cycle(10, lanesOf("job"), finished(r.Claimed[1]))
		equal(t, "in due order", ids(r.Claimed), []string{"3"})
		same(t, "first due time", r.Claimed[0].Due.UnixMilli(), 3)
		three := r.Claimed[0]
		r = a.cycle(10, lanesOf("job"), queue.Settlement{ID: "3", Fence: three.Fence, Outcome: queue.Moved, Lane: lane("job"), Delay: time.Hour, Record: queue.Rewrite(three)})
		equal(t, "after a retry", ids(r.Claimed), []string{"10"})
		same(t, "active", w.rdb.HGet(t.Context(), w.keys.Active, "k:k").Val(), "2")
	})
}

func TestCycle_keySkips(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		w.add(keyed("s@1", "s", 1, task.Skip, 1), keyed("s@2", "s", 1, task.Skip, 2), keyed("s@3", "s", 1, task.Skip, 3))
		r := a.cycle(10, lanesOf("job"))
		equal(t, "claimed", ids(r.Claimed), []string{"s@1"})
		same(t, "skipped", r.Skipped, 2)
		equal(t, "notes", w.notes(), []string{"s@2 skipped overlap", "s@3 skipped overlap"})
		same(t, "records", w.count(w.keys.Tasks), 1)
		same(t, "held", w.count(w.keys.Held), 0)
	})
}

func TestCycle_keyQueuesOne(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		w.add(keyed("s@1", "s", 1, task.QueueUp, 1), keyed("s@2", "s", 1, task.QueueUp, 2), keyed("s@3", "s", 1, task.QueueUp, 3))
		r := a.cycle(10, lanesOf("job"))
		equal(t, "claimed", ids(r.Claimed), []string{"s@1"})
		equal(t, "notes", w.notes(), []string{"s@3 skipped overlap"})
		r = a.cycle(10, lanesOf("job"), finished(r.Claimed[0]))
		equal(t, "then", ids(r.Claimed), []string{"s@2"})
	})
}

func TestCycle_keyReplaces(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		w.add(keyed("s@1", "s", 1, task.Replace, 1))
		one := a.claim(1, lanesOf("job"))[0]
		same(t, "cancels", len(a.beat().Cancel), 0)
		w.add(keyed("s@2", "s", 1, task.Replace, 2), keyed("s@3", "s", 1, task.Replace, 3))
		r := a.cycle(10, lanesOf("job"))
		same(t, "claimed", len(r.Claimed), 0)
		equal(t, "notes", w.notes(), []string{"s@2 skipped overlap"})
		cancels := a.beat().Cancel
		same(t, "cancels", len(cancels), 1)
		same(t, "covers the one that runs", cancels[0].Covers(one.ID, one.Key, one.Fence), true)
		same(t, "why", cancels[0].Reason, "replaced")
		r = a.cycle(10, lanesOf("job"), finished(one))
		equal(t, "then", ids(r.Claimed), []string{"s@3"})
		same(t, "covers the one that replaces it", cancels[0].Covers("s@3", "s", r.Claimed[0].Fence), false)
	})
}

// A key may be any text: nothing in it is taken for a pattern or a place in a record.
func TestCycle_keysOfAnyText(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		keys := []string{"a", "a ", "a!", "%a+", "1k1,w1:", "k:", "ключ", strings.Repeat("x", 256), "a:1,b"}
		n := 0
		for _, k := range keys {
			w.add(keyed(fmt.Sprint("run ", n), k, 1, task.Wait, 1), keyed(fmt.Sprint("wait ", n), k, 1, task.Wait, 2))
			n++
		}
		got := a.cycle(2*n, lanesOf("job")).Claimed
		same(t, "claimed", len(got), n)
		same(t, "held", w.count(w.keys.Held), int64(n))
		for _, x := range got {
			r := a.cycle(10, lanesOf("job"), finished(x))
			equal(t, "after "+x.Key, ids(r.Claimed), []string{strings.Replace(x.ID, "run", "wait", 1)})
		}
	})
}

// A crowd behind one key does not use up what a claim may look at.
func TestCycle_looksPastTasksWhoseKeyIsTaken(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		for i := range 50 {
			w.add(keyed(fmt.Sprint("k", i), "k", 1, task.Wait, int64(i+1)))
		}
		w.add(job("free"))
		equal(t, "claimed", ids(a.claim(2, lanesOf("job"))), []string{"k0", "free"})
	})
}

// A waiter whose lane the settling instance did not name is freed by the leader.
func TestCycle_waitersOfUnknownLanesAreFreedByTidy(t *testing.T) {
	t.Parallel()
	eachWorld(t, func(t *testing.T, w *world) {
		a := w.join("a")
		other := task.New("other", []byte("x"), task.ID("waits"), task.Key("k", 1))
		w.add(keyed("runs", "k", 1, task.Wait, 1))
		one := a.claim(1, lanesOf("job"))[0]
		w.add(other)
		same(t, "claimed", len(a.cycle(1, lanesOf("job", "other")).Claimed), 0)
		a.cycle(1, lanesOf("job"), finished(one))
		same(t, "held", w.count(w.keys.Held), 1)
		_, err := w.q.Tidy(t.Context(), 5*time.Second)
		w.must(err)
		same(t, "held", w.count(w.keys.Held), 0)
		a.claim(1, lanesOf("other"))
	})
}
