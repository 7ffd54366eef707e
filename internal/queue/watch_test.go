package queue_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// reading is the next cycle of i under a name for what it reads.
func (i *inst) reading(name string, want int, lanes []queue.LaneClaim) *queue.CycleReply {
	i.Helper()
	r := i.request(want, lanes)
	r.Reads = name
	reply, err := i.q.Cycle(i.Context(), r)
	i.must(err)
	return reply
}

func (w *world) wakes(id string) <-chan *redis.Message {
	w.Helper()
	sub := w.rdb.Subscribe(w.Context(), w.keys.WakeOf(id))
	w.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(w.Context())
	w.must(err)
	return sub.Channel()
}

func (w *world) told(what string, messages <-chan *redis.Message) {
	w.Helper()
	select {
	case <-messages:
	case <-time.After(5 * time.Second):
		w.Fatalf("%s: nobody was told", what)
	}
}

// An instance whose workers are all busy would get a wake-up in vain. An instance with a free worker gets it, and the place in
// the watch.
func TestCycle_fullDoesNotWatch(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a, b := w.join("a", consume("all")), w.join("b", consume("all"))
		same(t, "a watches", a.cycle(1, lanesOf("job")).Watching, true)
		same(t, "b watches", b.cycle(1, lanesOf("job")).Watching, true)
		messages := w.wakes("b")
		w.add(job("x"))
		a.claim(1, lanesOf("job"))
		same(t, "a watches", w.score(w.keys.Watch, "a"), -1)
		w.add(job("y"))
		w.told("y is due", messages)
		b.claim(1, lanesOf("job"))

		c, d := w.join("c", consume("all")), w.join("d", consume("all"))
		due := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.add(job("later", task.At(due)), job("z"))
		same(t, "d watches", d.cycle(0, lanesOf("job")).Watching, false)
		c.cycle(2, lanesOf("job"))
		d.cycle(1, lanesOf("job"))
		w.must(rdb.ZAdd(t.Context(), w.keys.Watch, redis.Z{Score: 9007199254740991, Member: "d"}).Err())
		messages = w.wakes("d")
		w.add(job("u"))
		w.must(rdb.ZAdd(t.Context(), w.keys.Watch, redis.Z{Score: 9007199254740991, Member: "d"}).Err())
		for len(messages) > 0 {
			<-messages
		}
		c.claim(1, lanesOf("job")) // full, and there is one due later
		w.told("later is due", messages)
		same(t, "d watches it", int64(w.score(w.keys.Watch, "d")), due.UnixMilli())
	})
}

// Instances that read other lanes watch for themselves.
func TestCycle_watchesForThoseWhoReadTheSame(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		due := w.now().Add(time.Hour).Truncate(time.Millisecond)
		w.add(task.New("one", nil, task.ID("one"), task.At(due)), task.New("two", nil, task.ID("two"), task.At(due)))
		names := []string{"a", "b", "c", "d", "e", "f"}
		types := []string{"one", "two", "one", "two", "one", "two"}
		var all []*inst
		for _, name := range names {
			all = append(all, w.join(name, consume("all")))
		}
		watching := map[string]int{}
		for i, inst := range all {
			if inst.reading(types[i], 1, lanesOf(types[i])).Watching {
				watching[types[i]]++
			}
		}
		same(t, "one is watched by", watching["one"], 2)
		same(t, "two is watched by", watching["two"], 2)

		one, two := w.wakes("a"), w.wakes("b")
		w.add(task.New("two", nil, task.ID("sooner")))
		w.told("of one", one)
		w.told("of two", two)

		// An instance that leaves is removed from the watch, for all its kinds, and another of its kind looks at its time.
		w.must(rdb.ZAdd(t.Context(), w.keys.Watch, redis.Z{Score: 9007199254740991, Member: "c\x1fone"},
			redis.Z{Score: 9007199254740991, Member: "e\x1fone"}, redis.Z{Score: 77, Member: "a\x1fone"}).Err())
		next := w.wakes("c")
		_, err := w.reg.Resign(t.Context(), "a", all[0].gen)
		w.must(err)
		same(t, "watching", w.count(w.keys.Watch), 5)
		w.told("to look in its place", next)
		same(t, "c looks", w.score(w.keys.Watch, "c\x1fone"), 77)
		same(t, "e waits", w.score(w.keys.Watch, "e\x1fone"), 9007199254740991)
	})
}

// A watcher that should have looked long ago may have died. Its place, which lasts as long as its lease, keeps no task from
// another watcher of its kind.
func TestEnqueue_wakesAnotherThanAWatcherThatIsLate(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a, b := w.join("a", consume("all")), w.join("b", consume("all"))
		a.cycle(1, lanesOf("job"))
		same(t, "b watches", b.cycle(1, lanesOf("job")).Watching, true)
		w.must(rdb.ZAdd(t.Context(), w.keys.Watch, redis.Z{Score: 77, Member: "a"}).Err())
		messages := w.wakes("b")
		w.add(job("x"))
		w.told("x is due", messages)
		b.claim(1, lanesOf("job"))
	})
}

// Watchers that are late do not keep another from watching for the next due time.
func TestCycle_watchesInPlaceOfThoseThatAreLate(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.add(job("later", task.At(w.now().Add(time.Hour))))
		a, b, c := w.join("a", consume("all")), w.join("b", consume("all")), w.join("c", consume("all"))
		same(t, "a watches", a.cycle(1, lanesOf("job")).Watching, true)
		same(t, "b watches", b.cycle(1, lanesOf("job")).Watching, true)
		same(t, "c watches as well", c.cycle(1, lanesOf("job")).Watching, false)
		for _, name := range []string{"a", "b"} {
			w.must(rdb.ZAdd(t.Context(), w.keys.Watch, redis.Z{Score: 77, Member: name}).Err())
		}
		same(t, "c watches in their place", c.cycle(1, lanesOf("job")).Watching, true)
	})
}

// If a settlement puts a task into a lane, or makes room under a limit, the script tells one instance of each kind: the
// instance that settled may be busy when the task is due.
func TestCycle_tellsEveryKindOfWhatItSettles(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		lanes := lanesOf("job")
		lanes[0].Limit = 1
		a := w.join("a", consume("all"))
		settle := func(s queue.Settlement) {
			t.Helper()
			r := a.request(1, lanes, s)
			r.Reads = "x y"
			_, err := w.q.Cycle(t.Context(), r)
			w.must(err)
		}
		w.add(job("x"))
		x := a.claim(1, lanes)[0]
		b := w.join("b", consume("all"))
		b.reading("x", 1, lanes)
		same(t, "b waits", w.score(w.keys.Watch, "b\x1fx"), 9007199254740991)
		told := w.wakes("b")
		settle(queue.Settlement{ID: x.ID, Fence: x.Fence, Outcome: queue.Moved, Lane: lane("job"), Delay: time.Hour})
		w.told("of the retry, and of room under the limit", told)
		if s := int64(w.score(w.keys.Watch, "b\x1fx")); s > w.now().UnixMilli() {
			t.Errorf("b looks at %d", s)
		}

		// With no limit it is told of the moment when the next attempt is due, and no sooner.
		lanes[0].Limit = 0
		w.add(job("z"))
		z := a.claim(1, lanes)[0]
		b.reading("x", 1, lanesOf("other"))
		due := w.now().Add(time.Minute).Truncate(time.Millisecond)
		settle(queue.Settlement{ID: z.ID, Fence: z.Fence, Outcome: queue.Moved, Lane: lane("job"), Due: due})
		same(t, "b looks", int64(w.score(w.keys.Watch, "b\x1fx")), due.UnixMilli())
	})
}

// An instance with an older list of lanes claims nothing, but settles, and counts as a watcher that will look again.
func TestCycle_claimsNothingByAnOlderListOfLanes(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(jobs("j", 2)...)
		j := a.claim(1, lanesOf("job"))[0]
		_, version, err := w.q.Lanes(t.Context())
		w.must(err)
		cycle := func(known int64, s ...queue.Settlement) *queue.CycleReply {
			t.Helper()
			r := a.request(1, lanesOf("job"), s...)
			r.LanesVer = known
			reply, err := w.q.Cycle(t.Context(), r)
			w.must(err)
			return reply
		}
		r := cycle(version+1, finished(j)) // larger: Redis may have lost its last writes
		same(t, "claimed", len(r.Claimed), 0)
		same(t, "may claim", r.MayClaim, true)
		same(t, "left due work", r.LeftDue, true)
		same(t, "version", r.LanesVer, version)
		same(t, "settled", w.rdb.HExists(t.Context(), w.keys.Tasks, j.ID).Val(), false)
		if s := int64(w.score(w.keys.Watch, "a")); s > w.now().UnixMilli() {
			t.Errorf("it looks at %d", s)
		}
		same(t, "claimed by the list that there is", len(cycle(version).Claimed), 1)
		w.add(job("k"))
		same(t, "claimed whatever the list", len(cycle(0).Claimed), 1)
	})
}

// A lane that is named twice is no reason to take more than what is due.
func TestCycle_aLaneNamedTwice(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("due"), job("later", task.In(time.Hour)))
		same(t, "claimed", len(a.cycle(4, lanesOf("job", "job")).Claimed), 1)
		same(t, "later is still due", w.count(w.keys.Due(lane("job"))), 1)
	})
}

// The last of a key dies with its instance, and the next is of another type: its turn comes with the recovery.
func TestRecover_givesTheTurnToAnotherType(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x", task.Key("k", 1), task.MaxAttempts(1)))
		a.claim(1, lanesOf("job"))
		w.add(task.New("other", nil, task.ID("y"), task.Key("k", 1)))
		same(t, "claimed", len(a.cycle(1, lanesOf("job", "other")).Claimed), 0)
		same(t, "held", w.count(w.keys.Held), 1)
		b := w.join("b")
		a.lose(b)
		_, _, err := w.q.Recover(t.Context(), a.gen, w.recoveries(a.gen))
		w.must(err)
		same(t, "dead", w.count(w.keys.Dead), 1)
		same(t, "claimed by another", b.claim(1, lanesOf("other"))[0].ID, "y")
	})
}

// A claim whose record is gone would keep its generation, and its place under a limit, for ever.
func TestRecover_forgetsWhatHasNoRecord(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x", task.Key("k", 1)))
		a.claim(1, lanesOf("job"))
		w.must(rdb.HDel(t.Context(), w.keys.Tasks, "x").Err())
		b := w.join("b")
		a.lose(b)
		_, left, err := w.q.Recover(t.Context(), a.gen, w.recoveries(a.gen))
		w.must(err)
		same(t, "left", left, 0)
		same(t, "orphans", w.count(w.keys.Orphans), 0)
		same(t, "active", w.count(w.keys.Active), 0)
	})
}
