package queue_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func slotOf(at time.Time) *task.Task {
	x := job(task.SlotID("s", at))
	x.Schedule, x.Slot = "s", at
	return x
}

// A schedule that is deleted and made again within the millisecond of a slot has that slot once.
func TestPromise1_madeAgainInTheMillisecondOfASlot(t *testing.T) {
	t.Parallel()
	m := testredis.Mini(t)
	at := time.UnixMilli(1_700_000_000_000)
	m.SetTime(at)
	w := newWorld(t, m.Client)
	a := w.join("a")
	change := func(c queue.Change) {
		c.Name, c.Expect = "s", w.lastRaw()
		_, moved, err := w.q.Change(t.Context(), 0, []queue.Change{c})
		w.must(err)
		same(t, "moved", len(moved), 0)
	}
	push := func() {
		raw := w.lastRaw()
		l, err := queue.ParseLast(raw)
		w.must(err)
		slot := l.Anchor
		l.Slot, l.Runs = slot, 1
		_, _, moved, err := w.q.Advance(t.Context(), a.term(), []queue.Step{{Name: "s", Expect: raw, Becomes: l.String(), Push: []queue.Push{{Task: slotOf(slot)}}}})
		w.must(err)
		same(t, "moved", len(moved), 0)
	}
	change(queue.Change{Definition: "d", Anchor: queue.Anchor{In: true}})
	push()
	a.claim(1, lanesOf("job"))
	change(queue.Change{Delete: true})
	change(queue.Change{Definition: "d", Anchor: queue.Anchor{In: true}})
	push()
	m.SetTime(at.Add(time.Millisecond))
	var all []string
	for range 2 {
		all = append(all, ids(a.cycle(1, lanesOf("job")).Claimed)...)
	}
	if want := task.SlotID("s", at.Add(time.Millisecond)); len(all) != 1 || all[0] != want {
		t.Errorf("claimed %v while slot %v runs, want %s", all, at, want)
	}
}

func (w *world) lastRaw() string { return w.rdb.HGet(w.Context(), w.keys.Last, "s").Val() }

// Of two tasks of a batch with one unique key, the window is that of the one that was added.
func TestEnqueue_theWindowIsThatOfTheOneThatStands(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		refused, _, err := w.q.Enqueue(t.Context(), []*task.Task{
			job("a", task.Unique("u", time.Hour)), job("b", task.Unique("u", time.Second)),
		}, true)
		w.must(err)
		same(t, "refused", refused[0] == nil && refused[1] != nil, true)
		if left := rdb.PTTL(t.Context(), w.keys.Unique("u")).Val(); left < 59*time.Minute {
			t.Errorf("the window ends in %v", left)
		}
	})
}
