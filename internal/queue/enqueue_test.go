package queue_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestEnqueue_addsTasksAsTheyAre(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		in := task.New("job", []byte("\x00\xff\nbinary"), task.ID("ünï code"), task.MaxAttempts(3), task.Timeout(time.Minute),
			task.Retry(time.Second, time.Minute), task.Trace("00-abc"), task.Key("k", 2))
		w.add(in, task.New("job", nil, task.ID("empty")), job("big"))
		got := a.claim(3, lanesOf("job"))
		equal(t, "claimed", sortedIDs(got), []string{"big", "empty", "ünï code"})
		for _, g := range got {
			if g.ID != in.ID {
				continue
			}
			same(t, "payload", string(g.Payload), string(in.Payload))
			same(t, "key", fmt.Sprint(g.Key, " ", g.KeyLimit), "k 2")
			same(t, "rest", fmt.Sprint(g.MaxAttempts, g.Timeout, g.Backoff, g.Trace, g.Attempt, g.Instance),
				fmt.Sprint(3, time.Minute, in.Backoff, "00-abc", 1, "a"))
			if g.Fence == 0 || g.Claimed.IsZero() || g.Due.IsZero() || g.Due.After(g.Claimed) {
				t.Errorf("claim says fence %d, claimed %v, due %v", g.Fence, g.Claimed, g.Due)
			}
		}
	})
}

func TestEnqueue_refusesAKnownID(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		w.add(job("x"), job("y", task.In(time.Hour)))
		refused, added, err := w.q.Enqueue(t.Context(), []*task.Task{job("x"), job("new"), job("new"), job("y")}, true)
		w.must(err)
		same(t, "dealt with", added, 4)
		for i, want := range []string{"x", "", "new", "y"} {
			var r *task.Refused
			if got := errors.As(refused[i], &r); got != (want != "") {
				t.Fatalf("task %d: refused = %v", i, refused[i])
			}
			if want != "" && (r.By != "id" || r.ID != want || !errors.Is(refused[i], task.ErrDuplicate) || !strings.Contains(r.Error(), want)) {
				t.Errorf("task %d: refused = %+v, want by id %s", i, r, want)
			}
		}
		// Running and dead ones are known as well; a finished one is not.
		x := a.claim(2, lanesOf("job"))
		refused, _, _ = w.q.Enqueue(t.Context(), []*task.Task{job("x")}, true)
		if refused[0] == nil {
			t.Error("a running ID was taken")
		}
		a.cycle(0, lanesOf("job"), allFinished(x)...)
		w.add(job("x"))
	})
}

func TestEnqueue_uniqueWindow(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		window := 300 * time.Millisecond
		add := func(id string) error {
			t.Helper()
			refused, _, err := w.q.Enqueue(t.Context(), []*task.Task{job(id, task.Unique("u", window))}, false)
			w.must(err)
			return refused[0]
		}
		w.must(add("first"))
		var r *task.Refused
		if err := add("second"); !errors.As(err, &r) || r.By != "unique" || r.ID != "first" || !strings.Contains(err.Error(), "first") {
			t.Fatalf("within the window: %v", err)
		}
		testredis.Eventually(t, 5*time.Second, func() error { return add("third") }, "the window never ends")

		// Within one batch the first wins, and no window is opened by one that was refused.
		refused, _, err := w.q.Enqueue(t.Context(), []*task.Task{
			job("a", task.Unique("b", 0)), job("b", task.Unique("b", 0)), job("a", task.Unique("c", time.Hour)),
		}, true)
		w.must(err)
		if refused[0] != nil || !errors.As(refused[1], &r) || r.ID != "a" || refused[2] == nil {
			t.Fatalf("refused = %v", refused)
		}
		same(t, "window of a refused task", rdb.Exists(t.Context(), w.keys.Unique("c")).Val(), 0)
		if d := rdb.PTTL(t.Context(), w.keys.Unique("b")).Val(); d <= 23*time.Hour {
			t.Errorf("default window = %v", d)
		}
	})
}

func TestEnqueue_delaysByTheClockOfRedis(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		before := w.now()
		w.add(job("in", task.In(time.Hour)), job("in2", task.In(time.Hour+time.Nanosecond)), job("now"))
		after := w.now()
		due := int64(w.score(w.keys.Due(lane("job")), "in"))
		if low, high := before.Add(time.Hour).UnixMilli(), after.Add(time.Hour).UnixMilli(); due < low || due > high {
			t.Errorf("due %d, want between %d and %d", due, low, high)
		}
		same(t, "rounded up", int64(w.score(w.keys.Due(lane("job")), "in2")), due+1)
		at := time.UnixMilli(4102444800000).Add(time.Microsecond)
		w.add(&task.Task{ID: "at", Type: "job", Due: at})
		same(t, "moment rounded up", int64(w.score(w.keys.Due(lane("job")), "at")), 4102444800001)
	})
}

func TestEnqueue_registersLanesOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		sub := rdb.Subscribe(t.Context(), w.keys.Wake)
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		messages := sub.Channel()
		w.add(job("a"), job("b"), task.New("other", nil, task.ID("c"), task.Queue("q"), task.WithPriority(task.High)))
		lanes, v1, err := w.q.Lanes(t.Context())
		w.must(err)
		same(t, "lanes", len(lanes), 2)
		same(t, "message", (<-messages).Payload, "lanes")
		w.add(job("d"))
		_, v2, err := w.q.Lanes(t.Context())
		w.must(err)
		same(t, "version", v2, v1)
		w.add(task.New("third", nil, task.ID("e")))
		_, v3, err := w.q.Lanes(t.Context())
		w.must(err)
		if v3 <= v2 {
			t.Errorf("version %d after a new lane, before %d", v3, v2)
		}
	})
}

// Of those that wait, only the one that would have looked first is told, and only if the task comes earlier.
func TestEnqueue_wakesTheEarliestWatcherOnly(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		now := w.now().UnixMilli()
		w.must(rdb.ZAdd(t.Context(), w.keys.Watch,
			redis.Z{Score: float64(now + 60_000), Member: "a"}, redis.Z{Score: float64(now + 90_000), Member: "b"}).Err())
		sub := rdb.PSubscribe(t.Context(), w.keys.Wake+":*")
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		messages := sub.Channel()
		w.add(job("late", task.In(time.Hour)))
		w.add(job("soon", task.In(30*time.Second)))
		w.add(job("again", task.In(31*time.Second))) // a looks before that by now
		w.add(job("last"))
		for range 2 {
			m := <-messages
			same(t, "channel", m.Channel, w.keys.WakeOf("a"))
		}
		select {
		case m := <-messages:
			t.Errorf("a third message: %v", m)
		case <-time.After(50 * time.Millisecond):
		}
		if s := w.score(w.keys.Watch, "a"); s > float64(w.now().UnixMilli()) {
			t.Errorf("the one that was woken still watches %v", s)
		}
	})
}

func TestEnqueue_splitsLargeBatches(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		a := w.join("a")
		const n = 20_000
		w.add(jobs("j", n)...)
		same(t, "due", w.count(w.keys.Due(lane("job"))), n)
		same(t, "records", w.count(w.keys.Tasks), n)
		same(t, "claimed at once", len(a.cycle(queue.MaxBatch, lanesOf("job")).Claimed), queue.MaxBatch)
		refused, _, err := w.q.Enqueue(t.Context(), jobs("j", n), true)
		w.must(err)
		for i, r := range refused {
			if r == nil {
				t.Fatalf("task %d was added twice", i)
			}
		}
	})
}

func TestEnqueue_carriesPayloadsOfAnySize(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		patient := *rdb.Options() // the race detector makes a script in this process slow
		patient.ReadTimeout = time.Minute
		rdb = redis.NewClient(&patient)
		t.Cleanup(func() { rdb.Close() })
		w := newWorld(t, rdb)
		a := w.join("a")
		var list []*task.Task
		sizes := []int{0, 1, 127, 128, 16_383, 16_384, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 5 << 20}
		for i, size := range sizes {
			list = append(list, task.New("job", []byte(strings.Repeat("\n", size)), task.ID(fmt.Sprintf("%02d", i))))
		}
		w.add(list...)
		claimed := 0
		for left := true; left; { // one claim carries only so many bytes
			r := a.cycle(len(list), lanesOf("job"))
			for _, got := range r.Claimed {
				i, err := strconv.Atoi(got.ID)
				w.must(err)
				same(t, "bytes of "+got.ID, len(got.Payload), sizes[i])
			}
			claimed += len(r.Claimed)
			left = r.LeftDue && len(r.Claimed) > 0
		}
		same(t, "claimed", claimed, len(list))
	})
}

func TestEnqueue_worksAfterScriptsWereFlushed(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	w := newWorld(t, srv.Client())
	a := w.join("a")
	w.add(job("x"))
	for i := range 3 {
		w.must(w.rdb.ScriptFlush(t.Context()).Err())
		w.add(job(fmt.Sprint(i)))
		w.must(w.rdb.ScriptFlush(t.Context()).Err())
		got := a.claim(1, lanesOf("job"))
		w.must(w.rdb.ScriptFlush(t.Context()).Err())
		a.cycle(0, lanesOf("job"), allFinished(got)...)
	}
}

// A client that may only enqueue cannot hold up the instances by naming queues: a task for one queue too many is refused, and
// only that task.
func TestEnqueue_lanesAreBounded(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.add(job("known"))
		names := make([]any, 0, 4000)
		for i := range 1998 {
			names = append(names, fmt.Sprintf("q%d|normal|other", i), 1)
		}
		w.must(rdb.HSet(t.Context(), w.keys.Lanes, names...).Err())
		in := func(queue, id string) *task.Task { return job(id, task.Queue(queue)) }
		for _, look := range []bool{false, true} {
			mark := fmt.Sprint(look)
			refused, _, err := w.q.Enqueue(t.Context(), []*task.Task{in("z", "1"+mark), job("2" + mark), in("y", "3"+mark), in("z", "4"+mark), job("5" + mark)}, look)
			w.must(err)
			for i, err := range refused {
				var field *task.FieldError
				if want := i == 2; errors.As(err, &field) != want || want && field.Field != "queue" {
					t.Errorf("look %v: task %d: %v", look, i, err)
				}
			}
		}
		same(t, "records", rdb.HLen(t.Context(), w.keys.Tasks).Val(), int64(9))
		same(t, "lanes", rdb.HLen(t.Context(), w.keys.Lanes).Val(), int64(2000))
	})
}

// A refusal for one lane too many names the one who made the most, also after the leader has tidied up.
func TestEnqueue_namesWhoFilledTheLanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	w.add(job("unnamed"))
	shop := queue.By(t.Context(), "shop at night")
	for n := 0; n < queue.MostLanes-1; {
		var list []*task.Task
		for ; len(list) < 500 && n < queue.MostLanes-1; n++ {
			list = append(list, task.New(fmt.Sprint("type", n), nil, task.ID(fmt.Sprint(n))))
		}
		_, _, err := w.q.Enqueue(shop, list, false)
		w.must(err)
	}
	_, err := w.q.Tidy(t.Context(), time.Hour)
	w.must(err)
	refused, _, err := w.q.Enqueue(queue.By(t.Context(), "another"), []*task.Task{task.New("more", nil, task.ID("x"))}, true)
	w.must(err)
	if refused[0] == nil || !strings.Contains(refused[0].Error(), `"shop at night"`) || !strings.Contains(refused[0].Error(), fmt.Sprint(queue.MostLanes-1)) {
		t.Errorf("%v", refused[0])
	}
	makers, err := w.q.MakersOfLanes(t.Context())
	w.must(err)
	same(t, "those of callers without a name", makers[""], 1)
}

// A unique key that another program has overwritten holds no window, and blocks no task.
func TestEnqueue_aUniqueKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		w.must(rdb.HSet(t.Context(), w.keys.Unique("u"), "a", "b").Err())
		w.add(job("x", task.Unique("u", time.Hour)))
		refused, _, err := w.q.Enqueue(t.Context(), []*task.Task{job("y", task.Unique("u", time.Hour))}, true)
		w.must(err)
		if !errors.Is(refused[0], task.ErrDuplicate) || rdb.TTL(t.Context(), w.keys.Unique("u")).Val() <= 0 {
			t.Errorf("the second: %v", refused[0])
		}
	})
}
