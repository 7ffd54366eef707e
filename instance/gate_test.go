package instance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

func (r *rig) wantOpen(want bool) {
	r.Helper()
	if id, _, open := r.lead(); open != want {
		r.Fatalf("open is %v under leader %q, want %v", open, id, want)
	}
}

func TestGate_isShutUntilTheFirstLeaderOpensIt(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.enqueue("x")
		a := r.up("a", "")
		r.wantOpen(false)
		r.wantClaims(a, 0)
		r.open(a)
		r.open(a)
		r.wantOpen(true)
		r.wantClaims(a, 1)
	})
}

func TestGate_staysOpenOnHandover(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a := r.up("a", "")
		r.open(a)
		b := r.up("b", "")
		r.wantOpen(true) // a newer one
		c := r.up("c", "")
		r.resign(c)
		r.wantLeader("b")
		r.wantOpen(true) // resigned
		r.expire(b, time.Millisecond)
		r.beat(a)
		r.wantLeader("a")
		r.wantOpen(true) // crashed, and another was there
	})
}

func TestGate_stillShutAfterAHandoverBeforeItWasOpened(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a := r.up("a", "")
		led := r.beat(a).Back
		if led.IsZero() {
			t.Error("the gate is shut, and nobody knows since when somebody leads again")
		}
		time.Sleep(2 * time.Millisecond)
		b := r.up("b", "")
		r.wantOpen(false)
		if got := r.beat(b).Back; !got.Equal(led) {
			t.Errorf("somebody leads again since %v, and after a handover since %v", led, got)
		}
		r.open(b)
		if got := r.beat(b).Back; !got.IsZero() {
			t.Errorf("the gate is open, and somebody leads again since %v", got)
		}
	})
}

// A release that knows nothing of it leaves what it does not know as it was when it elects.
func TestGate_sinceWhenSomebodyLeadsAgainIsOfItsOwnEpoch(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a := r.up("a", "")
		if err := rdb.HIncrBy(t.Context(), r.q.Keys().Leader, "epoch", 1).Err(); err != nil {
			t.Fatal(err)
		}
		if got := r.beat(a).Back; !got.IsZero() {
			t.Errorf("it is taken for true: %v", got)
		}
	})
}

// Redis lost its last writes, and by the leases that are left no instance was there. But Redis answered an instance a moment
// ago, and that instance saw a leader. So the gate is shut, because the runs of dead generations must be taken back, but no
// slot was missed. The proof is good for one election.
func TestGate_nothingWasMissedIfAnInstanceHasProofThatSomebodyLed(t *testing.T) {
	t.Parallel()
	lease := 10 * time.Second
	for name, c := range map[string]struct {
		ago  time.Duration
		led  bool
		want bool
	}{
		"answered a moment ago":      {time.Second, true, true},
		"answered before the lease":  {lease + time.Second, true, false},
		"nobody led when it was":     {time.Second, false, false},
		"a new process, of no proof": {0, false, false},
		"by a clock that is ahead":   {-2 * lease, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				t.Parallel()
				r := newRig(t, rdb)
				ctx := t.Context()
				a, b := r.up("a", "v1"), r.up("b", "v1")
				r.open(b)
				for _, m := range []member{a, b} {
					r.expire(m, time.Hour)
				}
				w := Past{Gen: a.gen, Order: a.gen, Led: c.led}
				if c.ago != 0 {
					now, err := r.q.Now(ctx)
					must(t, err)
					w.Seen = now.Add(-c.ago)
				}
				gen, _, _, err := r.reg.Register(ctx, Config{ID: "a", Release: "v1", Lease: lease}, w)
				must(t, err)
				a.gen = gen
				r.ready(a)
				r.wantLeader("a")
				r.wantOpen(false)
				ever := time.Unix(1, 0)
				if back := r.beat(a).Back; back.Before(ever) != c.want {
					t.Errorf("nobody led up to %s, want that there was no such time: %v", back, c.want)
				}
				r.open(a)
				r.leave(a)
				n := r.up("n", "v1")
				if back := r.beat(n).Back; back.Before(ever) {
					t.Error("the proof is good for a later time with nobody, too")
				}
			})
		})
	}
}

// During a pause no instance claims, not even the leader. After it all may.
func TestPause_nobodyTakesWork(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		ctx, leader := t.Context(), r.q.Keys().Leader
		r.enqueue("x", "y", "z")
		a := r.up("a", "")
		r.open(a)
		r.want = 1
		r.wantClaims(a, 1)
		_, err := r.reg.Pause(ctx, time.Minute, "")
		must(t, err)
		r.wantClaims(a, 0)
		if r.beat(a).May {
			t.Error("a heartbeat says that it may")
		}
		v, err := r.reg.Pause(ctx, 0, "")
		must(t, err)
		if v.Leader != "a" || !r.beat(a).May {
			t.Errorf("the pause is over, %+v, and it may not", v)
		}
		r.wantClaims(a, 1)
		for _, end := range []string{"1", "9e300", "9999999999999999999", "900000000000000"} { // over, or not written by onbeat
			must(t, rdb.HSet(ctx, leader, "pause", end, "there", end).Err())
			if !r.beat(a).May {
				t.Errorf("a pause until %s holds", end)
			}
		}
		for _, d := range []time.Duration{-1, LongestPause + 1} {
			if _, err := r.reg.Pause(ctx, d, ""); err == nil {
				t.Errorf("a pause of %s was taken", d)
			}
		}
	})
}

func TestGate_isShutAfterATimeWithNoLeader(t *testing.T) {
	t.Parallel()
	endings := map[string]func(*rig, member){
		"resigned": func(r *rig, m member) { r.resign(m) },
		"left":     func(r *rig, m member) { r.leave(m) },
		// The next instance that starts finds the crash of the only instance, perhaps much later.
		"crashed":                func(r *rig, m member) { r.expire(m, time.Hour) },
		"crashed, seen by a new": func(r *rig, m member) { r.beat(r.join("new", "")); r.expire(m, time.Second) },
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				t.Parallel()
				r := newRig(t, rdb)
				a := r.up("a", "")
				r.open(a)
				end(r, a)
				b := r.up("b", "")
				r.wantLeader("b")
				r.wantOpen(false)
				r.open(b)
				r.wantOpen(true)
			})
		})
	}
}

func TestOpen_isForTheLeaderOfThisEpoch(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a := r.up("a", "")
		term := r.term(a)
		b := r.up("b", "")
		_, err := r.reg.Open(t.Context(), term)
		r.wantErr(err, queue.ErrNotLeader)
		_, err = r.reg.Open(t.Context(), r.term(a))
		r.wantErr(err, queue.ErrNotLeader)
		r.leave(b)
		_, err = r.reg.Open(t.Context(), term) // it leads again, in another epoch
		r.wantErr(err, queue.ErrNotLeader)
		_, _, err = r.reg.Declare(t.Context(), term)
		r.wantErr(err, queue.ErrNotLeader)
		r.wantOpen(false)
	})
}

func TestDeclare_goesToTheNewer(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		declares := func(m member, want bool) {
			t.Helper()
			r.wantLeader(m.id)
			got, again, err := r.reg.Declare(t.Context(), r.term(m))
			must(t, err)
			if got != want || got != (again == 0) {
				t.Fatalf("%s may declare: %v, want %v; to ask again in %v", m.id, got, want, again)
			}
		}
		a := r.up("a", "v1")
		declares(a, true)
		declares(a, true) // again, in the same term
		b := r.up("b", "v2")
		declares(b, true)
		r.prove(b)
		r.expire(b, time.Millisecond)
		r.beat(a)
		declares(a, false) // an older one that leads because the newer died
		b2 := r.up("b2", "v2")
		declares(b2, true) // the newer is back
		b3 := r.up("b3", "v2")
		declares(b3, true) // a newer generation of the same release
		r.resign(b3)
		declares(b2, true) // the newer generation is leaving
		r.leave(b3)
		declares(b2, true)
		r.leave(b2)
		r.leave(a)
		declares(r.up("a2", "v1"), true) // rolled back
	})
}

// A newer generation of the leader's release that does not lead keeps a person from nothing. A newer release still does.
func TestRedeclare_yieldsOnlyToANewerRelease(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		b := r.up("b", "v1")
		a := r.up("a", "v1")
		declares := func(ask func(context.Context, queue.Term) (bool, time.Duration, error), m member, want bool) {
			t.Helper()
			r.wantLeader(m.id)
			if may, _, err := ask(t.Context(), r.term(m)); err != nil || may != want {
				t.Fatalf("%s may declare: %v, %v; want %v", m.id, may, err, want)
			}
		}
		declares(r.reg.Declare, a, true)
		r.askResign(a)
		declares(r.reg.Declare, b, false)
		declares(r.reg.Redeclare, b, true)
		c := r.up("c", "v2")
		declares(r.reg.Declare, c, true)
		r.prove(c)
		r.expire(c, time.Millisecond)
		r.beat(b)
		declares(r.reg.Redeclare, b, false)
	})
}

func TestConsume_byTheRuleOfTheLeader(t *testing.T) {
	t.Parallel()
	rules := map[Consume]struct{ leader, mate, older, starting, draining int }{
		ConsumeNewest:  {leader: 1},
		ConsumeRelease: {leader: 1, mate: 1},
		ConsumeAll:     {leader: 1, mate: 1, older: 1},
	}
	for rule, want := range rules {
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
				t.Parallel()
				r := newRig(t, rdb)
				older := r.up("older", "v1", consume(ConsumeAll))
				mate := r.up("mate", "v2", consume(ConsumeAll))
				leader := r.up("leader", "v2", consume(rule))
				draining := r.up("draining", "v2", consume(rule))
				r.resign(draining)
				starting := r.join("starting", "v2", consume(rule))
				r.wantLeader("leader")
				r.open(leader)
				r.want = 1
				r.enqueue("1", "2", "3", "4", "5")
				for _, c := range []struct {
					m    member
					want int
				}{
					{draining, want.draining}, {starting, want.starting}, {older, want.older},
					{mate, want.mate}, {leader, want.leader},
				} {
					r.wantClaims(c.m, c.want)
				}
			})
		})
	}
}

// After a handover there is no watcher: a wake-up must not go to an instance that may not claim any more.
func TestElect_forgetsWhoWatched(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		watching := func(want int64) {
			t.Helper()
			if got, err := rdb.ZCard(t.Context(), r.q.Keys().Watch).Result(); err != nil || got != want {
				t.Fatalf("%d watch, want %d; %v", got, want, err)
			}
		}
		a := r.up("a", "", consume(ConsumeAll))
		r.open(a)
		r.wantClaims(a, 0)
		watching(1)
		b := r.up("b", "", consume(ConsumeAll))
		watching(0)
		r.wantClaims(a, 0)
		r.wantClaims(b, 0)
		watching(2)
		r.resign(a) // does not lead
		watching(1)
	})
}

// The leader opened the gate, and Redis lost that, or another program shut it, before a view showed it open: another term begins. A view
// that was on its way meanwhile shows it shut too, and ends nothing.
func TestGate_thatIsShutBeforeItWasSeenOpen(t *testing.T) {
	t.Parallel()
	s := newSession("a", 7, "v1")
	at := time.UnixMilli(1795338400000)
	shut := func(now time.Time) { s.see(View{Leader: "a", LeaderGen: 7, Epoch: 3, Now: now}) }
	shut(at)
	led := s.term
	s.Opened(2, at) // of a term before
	shut(at.Add(time.Second))
	s.Opened(3, at.Add(2*time.Second))
	for _, now := range []time.Duration{time.Second, 2 * time.Second} {
		shut(at.Add(now))
		if s.term != led {
			t.Fatalf("a view from before it was opened ended the term: %v", context.Cause(led.ctx))
		}
	}
	shut(at.Add(2*time.Second + time.Millisecond))
	if s.term == led || s.term == nil || !errors.Is(context.Cause(led.ctx), errShut) {
		t.Errorf("the term ended with %v, want another one", context.Cause(led.ctx))
	}
}
