package onbeat_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// damage is a namespace with a beat into which another program writes rubbish.
type damage struct {
	*testing.T
	rdb    *redis.Client
	rnd    *rand.Rand
	d      *onbeat.Dispatcher
	prefix string
	names  []string

	mu   sync.Mutex
	last map[string]time.Time // when each schedule last ran
}

const beatOfDamage = 100 * time.Millisecond

func newDamage(t *testing.T, seed uint64) *damage {
	t.Helper()
	w := &damage{T: t, rdb: testredis.Private(t).Client(), rnd: rand.New(rand.NewPCG(seed, 1)), last: map[string]time.Time{}}
	ns := testredis.Namespace(t)
	w.prefix = "onbeat:{" + ns + "}:"
	var said strings.Builder
	log := zerolog.New(zerolog.SyncWriter(&said)).Level(zerolog.WarnLevel)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(said.String())
		}
	})
	for i := range 2 {
		d := dispatcher(t, w.rdb, onbeat.Config{Namespace: ns, Lease: time.Second, Concurrency: 20, Drain: time.Second, Log: log})
		if w.d == nil {
			w.d = d
		}
		for n := range 8 {
			name := fmt.Sprint("s", n)
			if i == 0 {
				w.names = append(w.names, name)
			}
			rule := schedule.Every(beatOfDamage)
			if n%2 == 0 {
				rule.Overlap = schedule.OverlapSkip
			}
			must(t, d.Schedule(name, rule, "job"+fmt.Sprint(n%3), nil))
		}
		for n := range 3 {
			must(t, d.Handle("job"+fmt.Sprint(n), handlers.Func(func(_ context.Context, tk *task.Task) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.last[tk.Schedule] = time.Now()
				return nil
			})))
		}
		run(t, d)
	}
	return w
}

// goesOn waits until every schedule has run since a moment, but for those that are damaged themselves. It may take half a minute: a run
// whose claim was lost counts for its key until the leader counts again.
func (w *damage) goesOn(since time.Time, but string, what string) {
	w.Helper()
	w.Cleanup(func() {
		if !w.Failed() {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range w.names {
			if name != but && w.last[name].Before(since) {
				w.Logf("%s last ran %v before", name, since.Sub(w.last[name]))
			}
		}
	})
	testredis.Eventually(w, 2*patience, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(w.names, func(name string) bool { return name != but && w.last[name].Before(since) })
	}, "the beat goes on after %s", what)
}

var rubbish = []string{
	"", "x", "-1", "0", "9e300", "1e400", "nan", "inf", "1 2 3", "1 2 3 4 5", "9 9 9 9 9", "99999999999999999999", "9007199254740993",
	"\n", "a\nb", "\x1f", "k:\x1f", "\x00", "\xff\xfe", "{", "{}", "[]", "null", "1k1,s5:", "1k9999999999,q3:abc", "default|normal|",
	"||", "s0@x", "s1@99999999999999999", "1 1 r 0 newest newest v1", "0 0", strings.Repeat("\x00", 1000), strings.Repeat("9", 400),
}

func (w *damage) pick(list []string) string { return list[w.rnd.IntN(len(list))] }

// once damages something. It returns what it did, and the schedule of the damaged entry.
func (w *damage) once(ctx context.Context) (what, of string) {
	keys := w.rdb.Keys(ctx, w.prefix+"*").Val()
	keys = slices.DeleteFunc(keys, func(k string) bool { return strings.Contains(k, ":aside:") })
	slices.Sort(keys)
	key := w.pick(keys)
	name := strings.TrimPrefix(key, w.prefix)
	if w.rnd.IntN(8) == 0 {
		must(w.T, w.rdb.Set(ctx, key, w.pick(rubbish), 0).Err())
		return "SET " + name, ""
	}
	value := w.pick(rubbish)
	switch kind := w.rdb.Type(ctx, key).Val(); kind {
	case "hash":
		field := w.pick(append(w.rdb.HKeys(ctx, key).Val(), rubbish...))
		must(w.T, w.rdb.HSet(ctx, key, field, value).Err())
		what = fmt.Sprintf("HSET %s %.20q %.20q", name, field, value)
		of, _, _ = strings.Cut(field, "@")
	case "zset":
		member := w.pick(append(w.rdb.ZRange(ctx, key, 0, -1).Val(), rubbish...))
		scores := []float64{0, -1, 1.5, math.Inf(1), math.Inf(-1), 9e300, 1e15, float64(time.Now().UnixMilli())}
		score := scores[w.rnd.IntN(len(scores))]
		must(w.T, w.rdb.ZAdd(ctx, key, redis.Z{Score: score, Member: member}).Err())
		what = fmt.Sprintf("ZADD %s %v %.20q", name, score, member)
		of, _, _ = strings.Cut(member, "@")
	case "stream":
		must(w.T, w.rdb.XAdd(ctx, &redis.XAddArgs{Stream: key, Values: []string{w.pick(append(rubbish, "runs", "slots", "event")), value}}).Err())
		what = fmt.Sprintf("XADD %s %.20q", name, value)
	default:
		what = name + " is " + kind
	}
	return what, of
}

// repair applies a schedule anew.
func (w *damage) repair(ctx context.Context, name string) {
	if !slices.Contains(w.names, name) {
		return
	}
	n := slices.Index(w.names, name)
	testredis.Eventually(w, patience, func() bool { // twice a minute the leader looks for damage that no instance comes upon
		for _, key := range []string{"schedules", "last", "behind"} {
			w.rdb.HDel(ctx, w.prefix+key, name)
		}
		_, err := w.d.Schedules().Apply(ctx, producer.Schedule{Name: name, Rule: schedule.Every(beatOfDamage), Task: "job" + fmt.Sprint(n%3)})
		if errors.Is(err, store.ErrWrongType) {
			_, err = w.d.Queue().Mend(ctx, err)
			must(w.T, err)
			return false
		}
		return err == nil
	}, "%s is applied again", name)
}

// Another program may write anything into any key: only the damaged entry stops. ONBEAT_DAMAGE says for how long the test
// tries.
func TestDamage_stopsNobodyElse(t *testing.T) {
	t.Parallel()
	span := 6 * time.Second
	if text := os.Getenv("ONBEAT_DAMAGE"); text != "" {
		var err error
		span, err = time.ParseDuration(text)
		must(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	w := newDamage(t, seed)
	ctx := t.Context()
	w.goesOn(time.Now(), "", "the start")
	n, worst := 0, time.Duration(0)
	for end := time.Now().Add(span); time.Now().Before(end); n++ {
		what, of := w.once(ctx)
		t.Logf("%d: %s", n, what)
		began := time.Now()
		w.goesOn(began, of, what)
		worst = max(worst, time.Since(began))
		w.repair(ctx, of)
	}
	t.Logf("damaged %d times; at the latest all others had run again after %v", n, worst.Round(time.Millisecond))
}

// Damages that once stopped a beat for good, found by hours of the test above.
func TestDamage_thatStoppedABeat(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(ctx context.Context, w *damage) error{
		"a gate that nobody shut": func(ctx context.Context, w *damage) error {
			return w.rdb.HSet(ctx, w.prefix+"leader", "open", "0").Err()
		},
		"definitions gone, and no later change to be seen": func(ctx context.Context, w *damage) error {
			damaged := w.rdb.ZAdd(ctx, w.prefix+"changed", redis.Z{Score: 1e15, Member: "x"}).Err()
			_, err := w.d.Schedules().Pause(ctx, "s0", "") // so that the leader looks at what has changed
			time.Sleep(time.Second)
			_, again := w.d.Schedules().Resume(ctx, "s0")
			return errors.Join(damaged, err, again, w.rdb.HDel(ctx, w.prefix+"schedules", "s1", "s2", "s3", "s4").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newDamage(t, 1)
			w.goesOn(time.Now(), "", "the start")
			must(t, harm(t.Context(), w))
			w.goesOn(time.Now().Add(3*time.Second), "", name) // the slots that were pushed ahead have run by then
		})
	}
}

// The tasks of a due set that was written over are found again by the instances themselves.
func TestDamage_whatWasSetAsideIsFoundAgain(t *testing.T) {
	t.Parallel()
	w := newDamage(t, 1)
	ctx := t.Context()
	w.goesOn(time.Now(), "", "the start")
	began, harmed := time.Now(), time.Time{}
	testredis.Eventually(t, patience, func() bool {
		if time.Since(harmed) > 3*time.Second { // again, if no slot was pushed ahead at that moment: then nothing is told
			must(t, w.rdb.Set(ctx, w.prefix+"due:default|normal|job1", "not ours", 0).Err())
			harmed = time.Now()
		}
		events, err := w.d.Queue().Events(ctx, began.Add(-time.Second), 10_000)
		must(t, err)
		return slices.ContainsFunc(events, func(e queue.Event) bool {
			return e.Kind == "found again" && e.Fields["lane"] == "default|normal|job1" && e.Fields["due"] != "0"
		})
	}, "slots that were pushed ahead are due again")
	w.goesOn(time.Now(), "", "that")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
