package instance

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// crash runs an instance of a release for a while, on a client of its own, and has it be heard of no more.
func (r *rig) crash(mini *testredis.Miniredis, c Config, after time.Duration) {
	r.Helper()
	other, line := r.other(mini)
	n := other.node(c)
	time.Sleep(after)
	line.hold(r.T)
	n.stop()
}

// share is how much of a time each release leads with an instance that lives, in percent.
func (r *rig) share(of time.Duration, alive func(id string) bool) map[string]int {
	count := map[string]int{}
	const step = 100 * time.Millisecond
	for range of / step {
		id, _, _ := r.lead()
		what := "nobody"
		if id != "" {
			release := parseMember(id, r.rdb.HGet(context.Background(), r.q.Keys().Members, id).Val()).Release
			if what = release; !alive(id) {
				what = "a dead one"
			}
		}
		count[what]++
		time.Sleep(step)
	}
	for what, n := range count {
		count[what] = n * 100 / int(of/step)
	}
	return count
}

// A release that crashes two seconds after each start, or after each time that it becomes ready, does not take the lead
// from one that works, again and again.
func TestProbation_aCrashLoopDoesNotStopTheBeat(t *testing.T) {
	t.Parallel()
	for name, lives := range map[string]time.Duration{"soon after its start": 2 * time.Second, "after a while": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
				r.node(Config{ID: "good", Release: "v1"}).session()
				time.Sleep(10 * time.Second)
				over := time.Now().Add(testredis.Size(6*time.Minute, 10*time.Minute))
				done := make(chan struct{})
				var dead sync.Map
				go func() {
					defer close(done)
					for i := 0; time.Now().Before(over); i++ {
						id := fmt.Sprint("bad", i)
						r.crash(mini, Config{ID: id, Release: "v2"}, lives)
						dead.Store(id, true)
						time.Sleep(2 * time.Second)
					}
				}()
				time.Sleep(2 * time.Minute)
				share := r.share(time.Until(over), func(id string) bool {
					_, is := dead.Load(id)
					return !is
				})
				<-done
				if share["v1"] < 85 || share["a dead one"] > 3 || share["nobody"] > 0 {
					t.Errorf("after two minutes the lead is, in percent of the time: %v", share)
				}
				for _, e := range r.events() {
					if e == "on probation bad9" {
						return
					}
				}
				t.Error("no event says that it is on probation")
			})
		})
	}
}

// A release is not held up if all its instances crash and no other instance is there.
func TestProbation_withoutAnotherReleaseThereIsNone(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		for range 5 {
			r.crash(mini, Config{Release: "v2"}, 2*time.Second)
			time.Sleep(2 * time.Second)
		}
		time.Sleep(10 * time.Second)
		began := time.Now()
		n := r.node(Config{Release: "v2"})
		wait(t, leading(n.session()).began, "term")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it led after %v", took)
		}
	})
}

// When the other candidate leaves, or is lost, one on probation leads in the same step.
func TestProbation_endsWhenNobodyElseIsThere(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(*node){
		"left": func(n *node) { must(n, n.leave()) },
		"lost": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
				other, line := r.other(mini)
				good := other.node(Config{ID: "good", Release: "v1"})
				good.session()
				time.Sleep(3 * time.Minute)
				for i := range 5 {
					r.crash(mini, Config{ID: fmt.Sprint("bad", i), Release: "v2"}, 31*time.Second)
					time.Sleep(6 * time.Second)
				}
				n := r.node(Config{ID: "last", Release: "v2"})
				lead := leading(n.session())
				time.Sleep(3 * time.Second)
				r.wantLeader("good")
				at := time.Now()
				most := 100 * time.Millisecond
				if leave != nil {
					leave(good)
				} else {
					line.hold(t)
					most += good.m.Lease()
				}
				wait(t, lead.began, "term of the one on probation")
				if took := time.Since(at); took > most {
					t.Errorf("it led after %v", took)
				}
				for _, e := range r.events() {
					if e == "no leader good" {
						t.Error("nobody led for a moment, and the gate was shut")
					}
				}
				good.stop()
			})
		})
	}
}

// Probation ends by itself too, and a release that stays up for long is forgiven.
func TestProbation_endsInTimeAndIsForgotten(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		r.node(Config{ID: "good", Release: "v1"}).session()
		r.crash(mini, Config{ID: "bad", Release: "v2"}, 2*time.Second)
		time.Sleep(6 * time.Second)
		r.wantLeader("good")
		began := time.Now()
		n := r.node(Config{ID: "again", Release: "v2"})
		lead := leading(n.session())
		wait(t, lead.began, "term")
		if took := time.Since(began); took < n.m.Lease() || took > n.m.Lease()+100*time.Millisecond {
			t.Errorf("it led after %v, want a lease of %v", took, n.m.Lease())
		}
		if strikes := r.rdb.HLen(context.Background(), r.q.Keys().Strikes).Val(); strikes != 1 {
			t.Errorf("%d releases have strikes, want 1", strikes)
		}
		time.Sleep(3 * time.Minute)
		for _, key := range []string{r.q.Keys().Strikes, r.q.Keys().Trial} {
			if r.rdb.Exists(context.Background(), key).Val() != 0 {
				t.Errorf("%s is left", key)
			}
		}
	})
}

// A machine that dies takes several with it: that is one strike, however many are lost and whenever each is found.
func TestProbation_instancesLostTogetherAreOneStrike(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		good := r.up("good", "v1")
		for i := range 3 {
			r.expire(r.up(fmt.Sprint("bad", i), "v2"), time.Millisecond)
		}
		r.beat(good)
		r.expire(r.up("late", "v2"), time.Millisecond)
		strikes := func() string { return r.rdb.HGet(context.Background(), r.q.Keys().Strikes, "v2").Val()[:2] }
		if got := strikes(); got != "1 " {
			t.Fatalf("strikes %q", got)
		}
		time.Sleep(6 * time.Second)
		must(t, r.rdb.ZAdd(context.Background(), r.q.Keys().Instances, z("good", time.Now().Add(time.Hour))).Err())
		m := r.join("after", "v2")
		if v := r.ready(m); v.Probation != 5*time.Second {
			t.Fatalf("on probation for %v", v.Probation)
		}
		time.Sleep(5 * time.Second)
		if v := r.ready(m); v.Probation != 0 || v.Leader != "after" {
			t.Fatalf("on probation for %v, and %s leads", v.Probation, v.Leader)
		}
		r.expire(m, time.Millisecond)
		r.beat(good)
		if got := strikes(); got != "2 " {
			t.Fatalf("strikes %q", got)
		}
		if v := r.ready(r.join("last", "v2")); v.Probation != 10*time.Second {
			t.Fatalf("on probation for %v", v.Probation)
		}
	})
}

// One that left in order has a clean slate.
func TestProbation_isForgottenByLeaving(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		r.node(Config{ID: "good", Release: "v1"}).session()
		r.crash(mini, Config{ID: "bad", Release: "v2"}, 2*time.Second)
		time.Sleep(6 * time.Second)
		n := r.node(Config{ID: "again", Release: "v2"})
		n.session()
		time.Sleep(time.Second)
		r.wantLeader("good")
		must(t, n.leave())
		m := r.node(Config{ID: "fresh", Release: "v2"})
		began := time.Now()
		wait(t, leading(m.session()).began, "term")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it led after %v", took)
		}
	})
}

// One that is promoted leads though its release crashed before.
func TestProbation_endsWithPromotion(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		r.node(Config{ID: "good", Release: "v1"}).session()
		r.crash(mini, Config{ID: "bad", Release: "v2"}, 2*time.Second)
		time.Sleep(6 * time.Second)
		n := r.node(Config{ID: "again", Release: "v2"})
		lead := leading(n.session())
		time.Sleep(time.Second)
		v, err := r.reg.Promote(context.Background(), "v2")
		must(t, err)
		if v.Leader != "again" {
			t.Fatalf("%q leads", v.Leader)
		}
		wait(t, lead.began, "term")
	})
}
