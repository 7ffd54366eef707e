package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// world is a partition whose instances lead when the test says so.
type world struct {
	testing.TB
	rdb  *redis.Client
	part queue.Partition
	q    *queue.Queue
	reg  *instance.Registry
}

func newWorld(t testing.TB, rdb *redis.Client) *world {
	t.Helper()
	return newWorldOf(t, rdb, queue.Partition{Namespace: testredis.Namespace(t)})
}

func newWorldOf(t testing.TB, rdb *redis.Client, part queue.Partition) *world {
	t.Helper()
	w := &world{TB: t, rdb: rdb, part: part}
	var err error
	w.q, err = queue.New(rdb, w.part, queue.Caps{})
	must(t, err)
	w.reg, err = instance.NewRegistry(w.q.Client(), w.part.Namespace)
	must(t, err)
	return w
}

// leader is an instance that leads from now on, with a notifier.
type leader struct {
	*Notifier
	w    *world
	term queue.Term
}

func (w *world) lead(id string, targets ...Target) *leader {
	w.Helper()
	const lease = time.Hour
	gen, _, _, err := w.reg.Register(w.Context(), instance.Config{ID: id, Release: id, Lease: lease}, instance.Past{})
	must(w, err)
	v, err := w.reg.Ready(w.Context(), id, gen, lease)
	must(w, err)
	if v.Leader != id {
		w.Fatalf("%s does not lead: %+v", id, v)
	}
	n, err := New(w.q.Client(), w.part.Namespace, Config{Targets: targets})
	must(w, err)
	return &leader{n, w, queue.Term{Instance: id, Gen: gen, Epoch: v.Epoch}}
}

func (l *leader) see() {
	l.w.Helper()
	_, err := l.look(l.w.Context(), l.term)
	must(l.w, err)
}

// turn looks until another window has begun.
func (l *leader) turn() {
	l.w.Helper()
	l.see()
	was := l.known.rounds[0].place.UpTo
	testredis.Eventually(l.w, 30*time.Second, func() bool {
		l.see()
		return l.known.rounds[0].place.UpTo > was
	}, "another window")
}

func (w *world) note(lines ...string) {
	w.Helper()
	must(w, w.rdb.XAdd(w.Context(), &redis.XAddArgs{Stream: w.q.Keys().History, Values: []any{"runs", strings.Join(lines, "\n")}}).Err())
}

// titles are those of the messages whose tasks are there.
func (w *world) titles() (list []string) {
	w.Helper()
	p, err := w.q.List(w.Context(), task.Due, queue.ListOptions{Type: Type, Limit: 1000})
	must(w, err)
	for _, f := range p.Tasks {
		var one delivery
		must(w, json.Unmarshal(f.Task.Payload, &one))
		if strings.Contains(string(f.Task.Payload), "hooks.example") {
			w.Errorf("the payload has the URL: %s", f.Task.Payload)
		}
		list = append(list, one.Target+" "+one.Message.Title())
	}
	slices.Sort(list)
	return list
}

// same compares the titles of all messages with those that are wanted, without the name of the target and of the namespace.
func (w *world) same(want ...string) {
	w.Helper()
	for i := range want {
		want[i] = "ops " + w.part.Namespace + ": " + want[i]
	}
	if got := w.titles(); !slices.Equal(got, want) {
		w.Errorf("got %q, want %q", got, want)
	}
}

var ops = Target{Name: "ops", URL: "https://hooks.example/sesame", Window: time.Second, Failing: 3, On: Topics()}

func TestNotifier_aThousandDeadAreOneMessage(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		l := w.lead("a", Target{Name: "ops", URL: ops.URL, Window: time.Second, On: []Topic{Dead}})
		l.turn() // so that the rest comes in one window
		now, err := w.q.Now(t.Context())
		must(t, err)
		var dead []redis.Z
		for i := range 1000 {
			dead = append(dead, redis.Z{Score: float64(now.UnixMilli()), Member: fmt.Sprintf("s@%d", i)})
		}
		must(t, rdb.ZAdd(t.Context(), w.q.Keys().Dead, dead...).Err())
		testredis.Eventually(t, 30*time.Second, func() bool { l.turn(); return len(w.titles()) > 0 }, "a message")
		w.same("1,000 tasks are dead")
	})
}

// A receiver refuses a message whose ID it has seen: messages of other partitions and namespaces have other IDs.
func TestNotifier_noOtherPartitionHasTheIDOfAMessage(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	mini.SetTime(start)
	namespace, ids := testredis.Namespace(t), map[string]bool{}
	var leaders []*leader
	for _, part := range []queue.Partition{{Namespace: namespace, Number: 1}, {Namespace: namespace, Number: 2}, {Namespace: namespace + "-other"}} {
		l := newWorldOf(t, mini.Client, part).lead("a", ops)
		l.see()
		l.w.note("m@1000 missed outage")
		leaders = append(leaders, l)
	}
	mini.SetTime(start.Add(time.Second))
	for _, l := range leaders {
		l.see()
		p, err := l.w.q.List(t.Context(), task.Due, queue.ListOptions{Type: Type})
		must(t, err)
		for _, f := range p.Tasks {
			ids[f.Task.ID] = true
		}
		l.w.same("1 slot was missed")
	}
	if len(ids) != len(leaders) {
		t.Errorf("%d messages have the IDs %q", len(leaders), slices.Sorted(maps.Keys(ids)))
	}
}

func TestMessageID_ofTheLongestNamesIsAnIDOfOurs(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("a", task.MaxNameLen)
	for _, topic := range append(Topics(), Unread) {
		if id := messageID(name+"#256", groupKey{name, topic}, mostWindow, start); !isOwn(id) || len(id) > task.MaxIDLen {
			t.Errorf("%s: an ID of %d bytes: %s", topic, len(id), id)
		}
	}
}

// The clock of Redis is set back, and the leader changes before it shows the old time again. The tasks that die until then are told
// of, as are those that died before the leader saw it.
func TestNotifier_tellsOfTheDeadAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	w := newWorld(t, mini.Client)
	target := ops
	target.On = []Topic{Dead}
	die := func(id string, at time.Time) {
		must(t, mini.Client.ZAdd(t.Context(), w.q.Keys().Dead, redis.Z{Score: float64(at.UnixMilli()), Member: id}).Err())
	}
	back := start.Add(-50 * time.Minute)
	die("told long ago", back.Add(-10*time.Minute))
	mini.SetTime(start)
	a := w.lead("a", target)
	a.see()
	die("before it was seen", back.Add(time.Second))
	mini.SetTime(back.Add(3 * time.Second))
	a.see()
	die("before another leads", back.Add(time.Minute))
	mini.SetTime(back.Add(20 * time.Minute))
	b := w.lead("b", target)
	b.see()
	die("at last", start.Add(-time.Second))
	mini.SetTime(start.Add(time.Second))
	b.see()
	w.same("3 tasks are dead")
	mini.SetTime(start.Add(2 * time.Second))
	b.see()
	w.same("3 tasks are dead")
}

// Nobody has noted a position in a namespace that is new, or that came back empty: its runs and slots so far are told of.
// In an older namespace, all begins with the first leader that has targets.
func TestNotifier_tellsWhatHappenedInANewNamespace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age  time.Duration
		told bool
	}{"new": {time.Second, true}, "older": {time.Hour, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				w := newWorld(t, rdb)
				now, err := w.q.Now(t.Context())
				must(t, err)
				first := fmt.Sprintf("%d-1", now.Add(-c.age).UnixMilli())
				must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.q.Keys().Events, ID: first, Values: []any{"event", "joined"}}).Err())
				w.note(fmt.Sprintf("night@%d missed", now.UnixMilli()))
				must(t, w.q.Tell(t.Context(), "no leader", "instance", "x"))
				target := ops
				target.On = []Topic{Missed, Leader}
				l := w.lead("a", target)
				l.turn()
				l.turn()
				if c.told {
					w.same("1 slot was missed")
				} else {
					w.same()
				}
			})
		})
	}
}

// A leader that goes leaves the open window to the next one.
func TestNotifier_aChangeOfLeaderLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		target := ops
		target.On = []Topic{Failing, Missed, Recovered}
		a := w.lead("a", target)
		a.turn()
		w.note("s@1000 failed 1 1", "s@1000 failed 2 1", "m@1000 missed outage")
		a.see() // read, and not told yet, unless the window has just ended
		b := w.lead("b", target)
		w.note("s@1000 dead 3 1")
		b.turn()
		b.turn()
		testredis.Eventually(t, 30*time.Second, func() bool {
			_, err := a.look(t.Context(), a.term)
			return over(err)
		}, "the old leader hears that it leads no more, at the end of its window")
		w.same("1 schedule or type fails again and again", "1 slot was missed")
	})
}

// The messages of a window are noted in one step with its end: whatever fails behind it, each is enqueued once.
func TestNotifier_aLeaderLostWhileItTellsLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		for name, added := range map[string]bool{"before": false, "after": true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, rdb)
				a := w.lead("a", ops)
				a.see()
				add := a.add
				a.add = func(ctx context.Context, x *task.Task) error {
					if added {
						if err := add(ctx, x); err != nil {
							return err
						}
					}
					return errLost
				}
				w.note("m@1000 missed outage")
				testredis.Eventually(t, 30*time.Second, func() bool {
					_, err := a.look(t.Context(), a.term)
					return errors.Is(err, errLost)
				}, "the leader is lost")
				b := w.lead("b", Target{Name: "ops", URL: ops.URL, Window: time.Second, On: []Topic{Missed}})
				b.turn()
				b.turn()
				w.same("1 slot was missed")
				if left, err := w.q.Notices(t.Context()); err != nil || slices.ContainsFunc(slices.Collect(maps.Keys(left)), func(k string) bool { return strings.HasPrefix(k, "m ") }) {
					t.Errorf("left: %v, %v", left, err)
				}
			})
		}
	})
}

var errLost = errors.New("lost")

func TestNotifier_saysWhatItCouldNotRead(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		target := ops
		target.On = []Topic{Missed}
		w.note("s@1 done 1 1")
		a := w.lead("a", target)
		a.turn()
		for range 10 {
			w.note("m@1000 missed outage")
		}
		must(t, rdb.XTrimMaxLen(t.Context(), w.q.Keys().History, 2).Err())
		a.turn()
		a.turn()
		w.same("2 slots were missed", "messages may be missing: Redis had cut off what happened before it was read")
	})
}

// An archive has Redis trim the runs that it has. The runs that the next leader reads again for the open window stay.
func TestNotifier_keepsTheRunsThatItNeeds(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	w := newWorld(t, rdb)
	target := ops
	target.On, target.Window = []Topic{Failing}, 2*time.Second
	fail := func(n int) {
		pipe := rdb.Pipeline()
		for range n {
			pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: w.q.Keys().Runs, Values: []any{"tasks", "x failed 1 1", "facts", "http default 0"}})
		}
		_, err := pipe.Exec(t.Context())
		must(t, err)
	}
	trim := func(l *leader) {
		seen, err := w.q.RunsTail(t.Context(), "", 0)
		must(t, err)
		_, err = w.q.TrimRuns(t.Context(), seen.Stream, l.Needed())
		must(t, err)
	}
	fail(500)
	a := w.lead("a", target)
	trim(a)
	if n := rdb.XLen(t.Context(), w.q.Keys().Runs).Val(); n != 500 {
		t.Errorf("%d are left, before the notifier has looked", n)
	}
	a.turn()
	trim(a)
	if n := rdb.XLen(t.Context(), w.q.Keys().Runs).Val(); n > 300 {
		t.Errorf("%d are left, and none is needed", n)
	}
	fail(1000)
	a.see()
	fail(1000)
	trim(a)
	b := w.lead("b", target)
	b.turn()
	b.turn()
	w.same("1 schedule or type fails again and again")
}

// A failover took the end of a stream back. The entries that were read before were told, and nothing is told twice.
func TestNotifier_goesOnFromTheEndOfAStreamThatWentBack(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		target := ops
		target.On = []Topic{Missed}
		w.note("m@1 done 1 1")
		a := w.lead("a", target)
		a.see()
		w.note("m@1000 missed outage")
		a.turn()
		rows, err := rdb.XRevRangeN(t.Context(), w.q.Keys().History, "+", "-", 1).Result()
		must(t, err)
		must(t, rdb.XDel(t.Context(), w.q.Keys().History, rows[0].ID).Err())
		a.turn()
		w.note("m@2000 missed outage")
		a.turn()
		a.turn()
		w.same("1 slot was missed", "1 slot was missed")
	})
}

// fakeSession is of an instance that does not lead.
type fakeSession struct {
	ctx      context.Context
	draining chan struct{}
}

func (s fakeSession) Context() context.Context                          { return s.ctx }
func (s fakeSession) Draining() <-chan struct{}                         { return s.draining }
func (s fakeSession) Term() (t queue.Term, began time.Time, leads bool) { return }

func TestNotifier_endsWithTheSession(t *testing.T) {
	t.Parallel()
	for _, end := range []func(context.CancelFunc, chan struct{}){
		func(cancel context.CancelFunc, _ chan struct{}) { cancel() },
		func(_ context.CancelFunc, draining chan struct{}) { close(draining) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		s := fakeSession{ctx, make(chan struct{})}
		end(cancel, s.draining)
		n, err := New(nil, "shop", Config{})
		must(t, err)
		must(t, n.Run(s)) // it asks Redis for nothing
		cancel()
	}
}
