package producer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/schedule"
)

// refusal is what a Redis answers that refuses.
type refusal string

func (a refusal) Error() string { return string(a) }
func (refusal) RedisError()     {}

// between is asked before each command of a client, and may answer it.
type between func(args []any) error

func (f between) DialHook(next redis.DialHook) redis.DialHook { return next }
func (f between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (f between) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := f(cmd.Args()); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// isAdvance and isChange tell scripts by their keys.
func (w *world) isAdvance(args []any) bool {
	return len(args) > 6 && args[3] == w.q.Keys().Instances && args[6] == w.q.Keys().Last
}

func (w *world) isChange(args []any) bool {
	return len(args) > 6 && args[3] == w.q.Keys().Schedules && args[5] == w.q.Keys().Changed
}

func mentions(args []any, text string) bool {
	return slices.ContainsFunc(args, func(a any) bool {
		if p, ok := a.(*string); ok {
			a = *p
		}
		s, ok := a.(string)
		return ok && strings.Contains(s, text)
	})
}

// goesOn fails unless every slot of a schedule up to a second ahead has been pushed.
func (w *world) goesOn(name string) {
	w.Helper()
	st, err := w.q.Schedule(context.Background(), name)
	must(w, err)
	e, err := newEntry(st)
	must(w, err)
	if e == nil || e.last.Slot.Before(w.now().Add(500*time.Millisecond)) {
		w.Fatalf("%s is not pushed any more: %+v at %v", name, e, w.now())
	}
}

func (w *world) hasEvent(kind string) (n int) {
	w.Helper()
	events, err := w.q.Events(context.Background(), time.Time{}, 0)
	must(w, err)
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func inBubble(t *testing.T, test func(t *testing.T, mini *testredis.Miniredis, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // a closed subscription may sleep for a moment
		mini := testredis.Mini(t)
		test(t, mini, worldIn(t, mini.Client, "stuck"))
	})
}

// A wrong answer of a former primary does not end the work of the term.
func TestScheduler_goesOnAfterOneWrongAnswer(t *testing.T) {
	for _, refused := range []refusal{"NOTLEADER epoch 0", "FENCED instance x"} {
		t.Run(strings.Fields(string(refused))[0], func(t *testing.T) {
			inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
				w.apply("s", schedule.Every(100*time.Millisecond))
				rdb := mini.Dialed(t)
				var wrong atomic.Bool
				rdb.AddHook(between(func(args []any) error {
					if w.isAdvance(args) && wrong.CompareAndSwap(true, false) {
						return refused
					}
					return nil
				}))
				n := w.startOver(rdb, "", nil)
				w.leads(n)
				time.Sleep(10 * time.Second)
				wrong.Store(true)
				time.Sleep(10 * time.Second)
				if wrong.Load() {
					t.Fatal("nothing was asked")
				}
				w.goesOn("s")
				n.stop()
				if _, noted := w.account("s"); noted != 0 {
					t.Errorf("%d slots were missed", noted)
				}
			})
		})
	}
}

// A leader that cannot push, or whose scheduler is blocked, hands over before a slot is late.
func TestScheduler_handsOverWhenItIsStuck(t *testing.T) {
	for name, block := range map[string]bool{"refused": false, "blocked": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
				w.apply("s", schedule.Every(100*time.Millisecond))
				other := w.startOver(mini.Dialed(t), "v1", nil)
				w.leads(other)
				rdb := mini.Dialed(t)
				var sick atomic.Bool
				cured := make(chan struct{})
				cure := sync.OnceFunc(func() { close(cured) })
				t.Cleanup(cure)
				rdb.AddHook(between(func(args []any) error {
					if !sick.Load() || !w.isAdvance(args) {
						return nil
					}
					if block {
						<-cured
					}
					return refusal("ERR something of its own")
				}))
				n := w.startOver(rdb, "v2", nil)
				w.leads(n)
				time.Sleep(10 * time.Second)
				sick.Store(true)
				time.Sleep(10 * time.Second)
				w.leads(other)
				w.goesOn("s")
				if w.hasEvent("stood down") == 0 {
					t.Error("there is no event")
				}
				sick.Store(false)
				cure()
				time.Sleep(time.Minute)
				w.leads(n)
				w.goesOn("s")
				n.stop()
				other.stop()
				if _, noted := w.account("s"); noted != 0 {
					t.Errorf("%d slots were missed", noted)
				}
			})
		})
	}
}

// Without another instance the leader leads on, reports it now and then, and schedules as soon as it can.
func TestScheduler_leadsOnWhenNobodyElseCan(t *testing.T) {
	inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
		w.apply("s", schedule.Every(100*time.Millisecond))
		var sick atomic.Bool
		rdb := mini.Dialed(t)
		rdb.AddHook(between(func(args []any) error {
			if sick.Load() && w.isAdvance(args) {
				return refusal("NOPERM this user has no permissions to run the 'evalsha' command")
			}
			return nil
		}))
		n := w.startOver(rdb, "", nil)
		w.leads(n)
		time.Sleep(10 * time.Second)
		sick.Store(true)
		time.Sleep(2*time.Minute + 10*time.Second)
		w.leads(n)
		if said := w.hasEvent("leads but cannot schedule"); said < 2 || said > 3 {
			t.Errorf("it said so %d times in two minutes", said)
		}
		sick.Store(false)
		time.Sleep(2 * time.Second)
		w.goesOn("s")
		n.stop()
	})
}

// A schedule that Redis refuses holds up no other: neither at the gate nor later. It comes when it is refused no more.
func TestScheduler_setsAsideWhatIsRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
		for _, name := range []string{"a", "poison", "z"} {
			w.apply(name, schedule.Rule{Every: 100 * time.Millisecond, Missed: schedule.MissedAll})
		}
		var cured atomic.Bool
		rdb := mini.Dialed(t)
		rdb.AddHook(between(func(args []any) error {
			if !cured.Load() && w.isAdvance(args) && mentions(args, "poison") {
				return refusal("ERR user_script:104: something of this schedule")
			}
			return nil
		}))
		n := w.startOver(rdb, "", nil)
		w.leads(n) // it waits for the gate
		time.Sleep(time.Minute)
		w.goesOn("a")
		w.goesOn("z")
		w.leads(n)
		if len(w.pushed("poison")) > 0 {
			t.Fatal("it was not refused")
		}
		cured.Store(true)
		time.Sleep(time.Minute)
		w.goesOn("poison")
		n.stop()
		for _, name := range []string{"a", "z", "poison"} {
			w.account(name)
		}
	})
}

// The leader waits for a schedule that is behind, and whose missed slots Redis refuses. It pushes them when they are refused no more.
func TestScheduler_waitsForMissedSlotsThatAreRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, w *world) {
		w.applied(all("s"))
		var cured atomic.Bool
		w.rdb.AddHook(between(func(args []any) error {
			if !cured.Load() && w.isAdvance(args) && mentions(args, "s@") {
				return refusal("ERR something of this schedule")
			}
			return nil
		}))
		tn := w.after(10*time.Minute+500*time.Millisecond, nil) // between two slots
		must(t, tn.push(t.Context()))
		if e := tn.entries["s"]; e.owed == "" || tn.aside["s"] == "" {
			t.Fatalf("it is behind with %q, and refused are %v", e.owed, tn.aside)
		}
		if tn.wait() <= 0 {
			t.Error("the leader does not wait")
		}
		cured.Store(true)
		ended, end := context.WithCancel(t.Context())
		end()
		if tn.retryAside(ended) == nil {
			t.Fatal("nothing failed")
		}
		must(t, tn.retryAside(t.Context()))
		w.finish(tn)
		if pushed, noted := w.account("s"); pushed < 600 || noted != 0 {
			t.Errorf("%d pushed, %d noted", pushed, noted)
		}
	})
}

// A leader whose only schedule was refused, and is deleted, has nothing to do: it does not say that it cannot schedule.
func TestScheduler_saysNoMoreOfWhatIsDeleted(t *testing.T) {
	inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
		w.apply("poison", schedule.Every(100*time.Millisecond))
		rdb := mini.Dialed(t)
		rdb.AddHook(between(func(args []any) error {
			if w.isAdvance(args) && mentions(args, "poison") {
				return refusal("ERR something of this schedule")
			}
			return nil
		}))
		n := w.startOver(rdb, "", nil)
		w.leads(n)
		time.Sleep(2 * time.Minute)
		must(t, w.Delete(t.Context(), "poison"))
		time.Sleep(2 * time.Minute)
		said := w.hasEvent("leads but cannot schedule")
		time.Sleep(5 * time.Minute)
		if again := w.hasEvent("leads but cannot schedule"); said == 0 || again != said {
			t.Errorf("it said so %d times, then %d", said, again)
		}
		n.stop()
	})
}

// A schedule that cannot be declared keeps neither the gate shut nor the stored schedules waiting.
func TestScheduler_goesOnWhenItCannotDeclare(t *testing.T) {
	inBubble(t, func(t *testing.T, mini *testredis.Miniredis, w *world) {
		w.apply("s", schedule.Every(100*time.Millisecond))
		var cured atomic.Bool
		rdb := mini.Dialed(t)
		rdb.AddHook(between(func(args []any) error {
			if !cured.Load() && w.isChange(args) {
				return refusal("ERR something of this schedule")
			}
			return nil
		}))
		n := w.startOver(rdb, "v1", declare("new"))
		w.leads(n)
		time.Sleep(time.Minute)
		w.goesOn("s")
		cured.Store(true)
		time.Sleep(31 * time.Second)
		if len(w.pushed("new")) != 1 {
			t.Error("it was not declared when it could be")
		}
		n.stop()
	})
}

// A connection that swallows an answer holds up the beat for half a lease, not for as long as the client waits.
func TestScheduler_boundsACall(t *testing.T) {
	t.Parallel()
	var p progress
	ctx, done := p.attempt(t.Context(), time.Second)
	defer done()
	first, ok := ctx.Deadline()
	time.Sleep(2 * time.Millisecond)
	second, _ := ctx.Deadline()
	if !ok || time.Until(first) > time.Second || !second.After(first) {
		t.Errorf("the first call has until %v, the second until %v", first, second)
	}
	done()
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Error("the attempt is over, and its context is not")
	}
}
