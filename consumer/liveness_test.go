package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// bubble runs a test in virtual time, on a Redis of its own.
func bubble(t *testing.T, test func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // a closed subscription may sleep for a moment
		test(worldIn(t, testredis.Mini(t).Client, "ns"))
	})
}

// deaf is a client whose instance hears no message.
type deaf struct{ redis.UniversalClient }

func (d deaf) Subscribe(ctx context.Context, _ ...string) *redis.PubSub {
	return d.UniversalClient.Subscribe(ctx, "nothing is said here")
}

// beat is the longest time between two heartbeats, and the longest that a watcher may be late before others look.
const beat = time.Second + 100*time.Millisecond

// began notes when each task began, for how long it runs, and on which instance.
type began struct {
	ledger
	lasts map[string]time.Duration
}

func (b *began) run(ctx context.Context, tk *task.Task) error {
	b.note(tk)
	select {
	case <-time.After(b.lasts[tk.ID]):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// by counts the runs of an instance.
func (b *began) by(n *node) (count int) {
	for _, tk := range b.all() {
		if tk.Instance == n.id {
			count++
		}
	}
	return count
}

// late is how long after its due time a task was claimed.
func (b *began) late(w *world, id string) time.Duration {
	w.Helper()
	for _, tk := range b.all() {
		if tk.ID == id {
			return tk.Claimed.Sub(tk.Due)
		}
	}
	w.Fatalf("%s did not run", id)
	return 0
}

func (w *world) soon(b *began, id string, bound time.Duration) {
	w.Helper()
	if late := b.late(w, id); late > bound {
		w.Errorf("%s began %v late, want at most %v", id, late, bound)
	}
}

func sticky(s *setup)              { s.instance.Lead = instance.LeadSticky }
func standby(s *setup)             { s.instance.Standby = true }
func named(id string) func(*setup) { return func(s *setup) { s.instance.ID = id } }
func minReady(d time.Duration) func(*setup) {
	return func(s *setup) { s.instance.MinReady = d }
}
func limit(typ string, n int) func(*setup) {
	return func(s *setup) { s.Limits = map[string]int{typ: n} }
}
func deafTo(w *world) func(*setup) { return over(deaf{w.rdb}) }

// If an instance that does not lead becomes ready, nothing changes for the others, and no message tells. So the instance must
// begin to claim by itself.
func TestConsume_whoIsReadyTakesWork(t *testing.T) {
	slow := func(s *setup) {
		at := time.Now().Add(3 * time.Second)
		s.instance.ReadyCheck = func(context.Context) error {
			if time.Now().Before(at) {
				return fmt.Errorf("not yet")
			}
			return nil
		}
	}
	for name, second := range map[string][]func(*setup){
		"min_ready":               {minReady(2 * time.Second), sticky, consumeBy(instance.ConsumeRelease)},
		"a slow check":            {slow, sticky, consumeBy(instance.ConsumeRelease)},
		"standby, by release":     {standby, minReady(2 * time.Second), consumeBy(instance.ConsumeRelease)},
		"standby, all":            {standby, slow, consumeBy(instance.ConsumeAll)},
		"whatever its own rule":   {standby, minReady(2 * time.Second), consumeBy(instance.ConsumeNewest)},
		"it hears nothing":        {standby, minReady(2 * time.Second), consumeBy(instance.ConsumeAll), nil},
		"ready from the start on": {standby, consumeBy(instance.ConsumeRelease)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				ran := began{lasts: map[string]time.Duration{}}
				var list []*task.Task
				for i := range 40 {
					id := fmt.Sprint("t", i)
					list = append(list, job(id))
					ran.lasts[id] = time.Second
				}
				lead := w.start(one(w.T, ran.run), concurrency(1), sticky, consumeBy(instance.ConsumeRelease))
				w.leads(lead)
				w.add(list...)
				changes := append([]func(*setup){concurrency(1)}, second...)
				if changes[len(changes)-1] == nil {
					changes[len(changes)-1] = deafTo(w)
				}
				other := w.start(one(w.T, ran.run), changes...)
				time.Sleep(3*time.Second + beat)
				had := ran.by(other)
				time.Sleep(10 * time.Second)
				if n := ran.by(other) - had; n < 9 {
					w.Errorf("in ten seconds of ready time it ran %d tasks of a second each; the leader ran %d", n, ran.by(lead))
				}
			})
		})
	}
}

// typed is a task of a type.
func typed(typ, id string, opts ...task.Option) *task.Task {
	return task.New(typ, nil, append([]task.Option{task.ID(id)}, opts...)...)
}

// handles makes handlers of types that run as run does.
func handles(w *world, run handlers.Func, types ...string) *handlers.Mux {
	w.Helper()
	fns := map[string]handlers.Func{}
	for _, typ := range types {
		fns[typ] = run
	}
	return mux(w.T, fns)
}

// heard and unheard are the two ways in which a wake-up can go.
var ears = map[string]func(w *world) func(*setup){
	"heard":   func(*world) func(*setup) { return func(*setup) {} },
	"unheard": deafTo,
}

var bounds = map[string]time.Duration{"heard": 10 * time.Millisecond, "unheard": beat}

// Any instance that handles its type may run a retry. The instance whose run failed may be busy when the retry is due.
func TestWake_aRetryReachesEveryKind(t *testing.T) {
	for ear, hears := range ears {
		t.Run(ear, func(t *testing.T) {
			bubble(t, func(w *world) {
				ran := began{lasts: map[string]time.Duration{"x": 2 * time.Second, "y": time.Minute}}
				a := w.start(handles(w, func(ctx context.Context, tk *task.Task) error {
					_ = ran.run(ctx, tk)
					if tk.ID == "x" {
						return handlers.RetryAfter(errors.New("not this time"), time.Second)
					}
					return nil
				}, "x", "y"), consumeBy(instance.ConsumeAll), concurrency(1), drain(-1))
				w.leads(a)
				w.add(typed("x", "x"))
				time.Sleep(100 * time.Millisecond)
				w.add(typed("y", "y")) // a takes it when x fails
				var second began
				b := w.start(handles(w, second.run, "x"), standby, hears(w))
				time.Sleep(10 * time.Second)
				if second.count("x") != 1 || second.by(b) != 1 {
					w.Fatalf("x ran %d times on the idle instance", second.count("x"))
				}
				if late := second.all()[0].Claimed.Sub(ran.all()[0].Claimed) - 3*time.Second; late > bounds[ear] {
					w.Errorf("x ran again %v late", late)
				}
			})
		})
	}
}

// No instance watches a type that has reached its limit. The script that makes room tells the instances that could take a
// task of it.
func TestWake_aFreedLimitReachesEveryKind(t *testing.T) {
	for ear, hears := range ears {
		t.Run(ear, func(t *testing.T) {
			bubble(t, func(w *world) {
				ran := began{lasts: map[string]time.Duration{"x1": 4 * time.Second, "y": time.Minute}}
				a := w.start(handles(w, ran.run, "x", "y"), consumeBy(instance.ConsumeAll), concurrency(1), drain(-1), limit("x", 1))
				w.leads(a)
				w.add(typed("x", "x1"))
				time.Sleep(time.Millisecond)
				w.add(typed("y", "y")) // a takes it when x1 ends: it is due before x2
				time.Sleep(time.Millisecond)
				w.add(typed("x", "x2"))
				b := w.start(handles(w, ran.run, "x"), standby, limit("x", 1), hears(w))
				time.Sleep(10 * time.Second)
				if ran.by(b) != 1 {
					w.Fatal("x2 did not run on the idle instance")
				}
				w.soon(&ran, "x2", 4*time.Second+bounds[ear])
			})
		})
	}
}

// Two that handle the same types, one of which lets fewer of them run, are not of one kind: the one cannot watch for the
// other.
func TestWake_reachesWhoeverHasAHigherLimit(t *testing.T) {
	bubble(t, func(w *world) {
		ran := began{lasts: map[string]time.Duration{"x1": time.Minute}}
		a := w.start(handles(w, ran.run, "x"), named("a"), consumeBy(instance.ConsumeAll), concurrency(2), drain(-1), limit("x", 1))
		w.leads(a)
		w.add(typed("x", "x1"))
		time.Sleep(100 * time.Millisecond)
		b := w.start(handles(w, ran.run, "x"), named("b"), standby, limit("x", 2))
		time.Sleep(2 * time.Second)
		w.add(typed("x", "x2"))
		time.Sleep(5 * time.Second)
		if ran.by(b) != 1 {
			w.Fatal("x2 did not run on the instance that may run it")
		}
		w.soon(&ran, "x2", 10*time.Millisecond)
	})
}

// An instance that was to look at a due time is lost long before: another looks in its place, whether or not it hears of that.
func TestWake_whatALostInstanceWatchedIsWatched(t *testing.T) {
	for ear, hears := range ears {
		t.Run(ear, func(t *testing.T) {
			bubble(t, func(w *world) {
				var ran began
				m := handles(w, ran.run, "x")
				n := w.start(m, named("n"), consumeBy(instance.ConsumeAll), hears(w))
				w.leads(n)
				w.add(typed("x", "warm"))
				w.gone("warm")
				lane := queue.Lane{Queue: task.DefaultQueue, Type: "x"}
				for _, id := range []string{"a", "b"} { // they never renew their lease
					gen, _, _, err := w.reg.Register(w.Context(), instance.Config{ID: id, Standby: true, Lease: 2 * time.Second}, instance.Past{})
					must(w, err)
					_, err = w.reg.Ready(w.Context(), id, gen, instance.DefaultLease)
					must(w, err)
					_, err = w.q.Cycle(w.Context(), &queue.CycleRequest{
						Instance: id, Gen: gen, Seq: 1, Want: 1, Lanes: []queue.LaneClaim{{Lane: lane}}, Reads: reads(m, &Config{}),
					})
					must(w, err)
				}
				w.add(typed("x", "x", task.In(8*time.Second)))
				time.Sleep(12 * time.Second)
				w.soon(&ran, "x", bounds[ear])
			})
		})
	}
}

// Redis forgets the watchers, as when it comes back without its last writes: a heartbeat finds that out.
func TestWake_whoIsForgottenLooks(t *testing.T) {
	bubble(t, func(w *world) {
		var ran began
		n := w.start(handles(w, ran.run, "x"))
		w.leads(n)
		w.add(typed("x", "warm"))
		w.gone("warm")
		time.Sleep(3 * time.Second)
		must(w, w.rdb.Del(w.Context(), w.q.Keys().Watch).Err())
		w.add(typed("x", "x"))
		time.Sleep(5 * time.Second)
		w.soon(&ran, "x", beat)
	})
}

// A lane that is new is known to a busy consumer before it claims again: an urgent task does not wait behind the others.
func TestConsume_readsANewLaneBeforeItClaims(t *testing.T) {
	bubble(t, func(w *world) {
		ran := began{lasts: map[string]time.Duration{}}
		n := w.start(handles(w, ran.run, "x"), concurrency(1))
		w.leads(n)
		var list []*task.Task
		for i := range 5 {
			id := fmt.Sprint("t", i)
			ran.lasts[id] = time.Second
			list = append(list, typed("x", id))
		}
		w.add(list...)
		time.Sleep(1500 * time.Millisecond) // the second runs
		w.add(typed("x", "low", task.WithPriority(task.Low)), typed("x", "high", task.WithPriority(task.High)))
		time.Sleep(time.Minute)
		order := ""
		for _, tk := range ran.all() {
			order += tk.ID + " "
		}
		if order != "t0 t1 high t2 t3 t4 low " {
			w.Errorf("ran %s", order)
		}
	})
}

// restless is a client before each of whose calls another lane comes or goes.
type restless struct {
	redis.UniversalClient
	meta string
}

func (r restless) Process(ctx context.Context, cmd redis.Cmder) error {
	time.Sleep(time.Millisecond)
	_ = r.HIncrBy(ctx, r.meta, "lanes", 1).Err()
	return r.UniversalClient.Process(ctx, cmd)
}

func TestConsume_claimsThoughLanesComeAllTheTime(t *testing.T) {
	bubble(t, func(w *world) {
		var ran began
		n := w.start(handles(w, ran.run, "x"), over(restless{w.rdb, w.q.Keys().Meta}))
		w.leads(n)
		w.add(typed("x", "x"))
		time.Sleep(2 * beat)
		w.soon(&ran, "x", 10*time.Millisecond)
	})
}

// silent is a client whose calls of one kind are never answered, for as long as it is said.
type silent struct {
	redis.UniversalClient
	swallows func(cmd redis.Cmder) bool
	over     chan struct{}
}

func (s *silent) Process(ctx context.Context, cmd redis.Cmder) error {
	if s.swallows(cmd) {
		<-s.over
		cmd.SetErr(context.Canceled)
		return context.Canceled
	}
	return s.UniversalClient.Process(ctx, cmd)
}

// A client without a read timeout waits for an answer for ever: the consumer does not, nor does its end, though heartbeats
// are answered.
func TestConsume_givesUpACallThatIsNotAnswered(t *testing.T) {
	bubble(t, func(w *world) {
		var ran began
		var none atomic.Bool
		keys := w.q.Keys()
		s := &silent{UniversalClient: w.rdb, over: make(chan struct{}), swallows: func(cmd redis.Cmder) bool {
			args := cmd.Args() // those of a cycle: its ninth key
			return none.Load() && len(args) > 11 && args[11] == keys.Dead
		}}
		w.Cleanup(func() { close(s.over) })
		n := w.start(handles(w, ran.run, "x"), over(s))
		w.leads(n)
		w.add(typed("x", "warm"))
		w.gone("warm")
		none.Store(true)
		w.add(typed("x", "x"))
		time.Sleep(time.Second)
		none.Store(false)
		time.Sleep(10 * time.Second)
		w.soon(&ran, "x", min(n.session.Lease(), callTimeout)+longestPause)

		none.Store(true)
		w.add(typed("x", "y"))
		time.Sleep(time.Second) // the call that is to claim it is under way
		began := time.Now()
		n.stop()
		if took := time.Since(began); took > settleTimeout+time.Second {
			w.Errorf("it took %v to stop", took)
		}
	})
}
