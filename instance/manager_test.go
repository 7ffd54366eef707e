package instance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// bubble runs a test on a miniredis in a synctest bubble: time passes when all wait.
func bubble(t *testing.T, test func(t *testing.T, r *rig, mini *testredis.Miniredis)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // a closed subscription may sleep for a moment
		mini := testredis.Mini(t)
		test(t, rigOf(t, mini.Client, "ns"), mini)
	})
}

// other is the same partition over a client of its own.
func (r *rig) other(mini *testredis.Miniredis) (*rig, *line) {
	r.Helper()
	rdb := mini.Dialed(r.T)
	return rigOf(r.T, rdb, r.p.Namespace), tap(r.T, rdb)
}

func TestManager_leadsAndIsDeposed(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		a := r.node(Config{ID: "a"})
		s := a.session()
		lead := leading(s)
		term := wait(t, lead.began, "term")
		if v := s.View(); v.Leader != "a" || v.LeaderGen != s.Gen || v.Epoch != term.Epoch || term.Gen != s.Gen {
			t.Fatalf("view %+v in term %+v", v, term)
		}
		began := time.Now()
		b := r.node(Config{ID: "b"})
		second := leading(b.session())
		wantCause(t, wait(t, lead.ended, "end of the term"), ErrDeposed)
		wait(t, second.began, "term of the newer")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Fatalf("the handover took %v: the older one was not woken", took)
		}
		must(t, b.leave())
		wantCause(t, wait(t, second.ended, "end of the second term"), ErrResigned)
		again := wait(t, lead.began, "term of the older one again")
		if again.Epoch <= term.Epoch {
			t.Fatalf("epoch %d after %d", again.Epoch, term.Epoch)
		}
		if s.Context().Err() != nil {
			t.Fatal("the session ended with the term")
		}
	})
}

func TestManager_leavesInOrder(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		a := r.node(Config{ID: "a"})
		lead := leading(a.session())
		wait(t, lead.began, "term")
		finish := make(chan struct{})
		b := r.nodeServing(Config{ID: "b"}, func(s *Session) error {
			<-s.Draining()
			<-finish
			return s.Context().Err()
		})
		s := b.session()
		wantCause(t, wait(t, lead.ended, "end of the term"), ErrDeposed)
		b.stop()
		wait(t, lead.began, "term of the other, while b still drains")
		time.Sleep(4 * b.m.Lease()) // it keeps its lease meanwhile
		if s.Context().Err() != nil {
			t.Fatal("the session ended while it drained:", context.Cause(s.Context()))
		}
		if got := r.events(); got[len(got)-1] == "left b" {
			t.Fatal("deregistered before serve returned")
		}
		close(finish)
		must(t, b.ended())
		wantCause(t, cause(t, s.Context()), ErrLeft)
		if list, _ := r.reg.List(context.Background()); len(list) != 1 {
			t.Fatalf("%d are registered, want 1", len(list))
		}
	})
}

func TestManager_resignsAgainWhenRedisDidNotHear(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		r.node(Config{ID: "a"}).session()
		other, line := r.other(mini)
		finish := make(chan struct{})
		b := other.nodeServing(Config{ID: "b"}, func(s *Session) error {
			<-s.Draining()
			<-finish
			return nil
		})
		lead := leading(b.session())
		wait(t, lead.began, "term")
		line.hold(t)
		b.stop()
		wantCause(t, wait(t, lead.ended, "end of the term"), ErrResigned)
		line.release()
		testredis.Eventually(t, testTimeout, func() bool { id, _, _ := r.lead(); return id == "a" }, "a leads")
		if len(lead.began) != 0 {
			t.Fatal("another term began after it had resigned")
		}
		close(finish)
		must(t, b.ended())
	})
}

func TestManager_returnsTheErrorOfServe(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		broken := errors.New("broken")
		n := r.nodeServing(Config{}, func(*Session) error { return broken })
		if err := n.ended(); !errors.Is(err, broken) {
			t.Fatalf("Run returned %v", err)
		}
		if list, _ := r.reg.List(context.Background()); len(list) != 0 {
			t.Fatal("it is still registered")
		}
		n = r.nodeServing(Config{}, func(*Session) error { return nil })
		must(t, n.ended())
	})
}

func TestManager_waitsForRedis(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		mini.SetError("LOADING Redis is loading the dataset in memory")
		n := r.node(Config{})
		time.Sleep(time.Hour)
		if len(n.sessions) != 0 {
			t.Fatal("serve was called without Redis")
		}
		mini.SetError("")
		n.session()

		mini.SetError("LOADING Redis is loading the dataset in memory")
		waiting := r.node(Config{})
		time.Sleep(time.Second)
		must(t, waiting.leave()) // SIGTERM while it waits
		mini.SetError("NOPERM this user has no permissions")
		if err := r.node(Config{}).ended(); !errors.Is(err, task.ErrDenied) {
			t.Fatalf("Run returned %v, want ErrDenied", err)
		}
		mini.SetError("")
	})
}

func TestManager_aShortOutageChangesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		n := r.node(Config{})
		s := n.session()
		lead := leading(s)
		wait(t, lead.began, "term")
		for range 5 {
			mini.SetError("LOADING Redis is loading the dataset in memory")
			time.Sleep(3 * time.Second)
			mini.SetError("")
			time.Sleep(1500 * time.Millisecond)
		}
		if s.Context().Err() != nil || len(n.sessions)+len(lead.ended) != 0 {
			t.Fatalf("the session ended: %v", context.Cause(s.Context()))
		}
	})
}

func TestManager_comesBackAsANewGeneration(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		n := r.nodeServing(Config{ID: "a", Release: "v1", MinReady: time.Minute}, func(s *Session) error {
			select {
			case <-s.Draining():
			case <-s.Context().Done():
			}
			return s.Context().Err() // context.Canceled: no reason to end
		})
		first := n.session()
		lead := leading(first)
		time.Sleep(61 * time.Second)
		wait(t, lead.began, "term")
		began := time.Now()
		mini.SetError("LOADING Redis is loading the dataset in memory")
		wantCause(t, cause(t, first.Context()), ErrLeaseLost)
		wantCause(t, wait(t, lead.ended, "end of the term"), ErrLeaseLost)
		if took := time.Since(began); took > n.m.Lease()-n.m.cfg.margin() {
			t.Fatalf("trusted the lease for %v", took)
		}
		time.Sleep(2 * releaseGrace)
		order := n.m.order
		mini.SetError("")
		began = time.Now()
		second := n.session()
		wait(t, leading(second).began, "term of the new generation")
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("led again after %v: it had to prove itself anew", took)
		}
		if second.Gen <= first.Gen || n.m.order != order {
			t.Fatalf("generation %d and order %d, had %d and %d", second.Gen, n.m.order, first.Gen, order)
		}
	})
}

func TestManager_forgottenByRedisComesBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		n := r.node(Config{})
		first := n.session()
		mini.FlushAll()
		wantCause(t, cause(t, first.Context()), ErrLeaseLost)
		if second := n.session(); second.Gen <= first.Gen {
			t.Fatalf("generation %d after %d", second.Gen, first.Gen)
		}
	})
}

// The processes of a promoted release know of it, so a Redis that comes back empty does not undo the promotion.
func TestManager_aPromotionOutlivesRedis(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		old := r.node(Config{ID: "old", Release: "v1"})
		leads := leading(old.session())
		wait(t, leads.began, "term of the old")
		now := r.node(Config{ID: "new", Release: "v2"})
		wait(t, leading(now.session()).began, "term of the new")
		_, err := r.reg.Promote(t.Context(), "v1")
		must(t, err)
		time.Sleep(DefaultLease) // it hears of it
		r.forget()
		again := leading(old.session())
		now.session()
		time.Sleep(DefaultLease) // both are ready
		r.wantLeader("old")
		wait(t, again.began, "term of the promoted")
	})
}

// A failover takes a promotion back that the processes have heard of: the next heartbeat carries it over again.
func TestManager_aPromotionThatWasLostComesAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		r.node(Config{ID: "old", Release: "v1", Order: &Order{}}).session()
		r.node(Config{ID: "new", Release: "v2", Order: &Order{}}).session()
		members := r.q.Keys().Members
		order := func() (before, rest string, n int64) {
			parts := strings.SplitN(r.rdb.HGet(t.Context(), members, "old").Val(), " ", 3)
			n, err := strconv.ParseInt(parts[1], 10, 64)
			must(t, err)
			return parts[0], parts[2], n
		}
		_, _, was := order()
		noted := r.rdb.HGet(t.Context(), r.q.Keys().Releases, "v1").Val()
		_, err := r.reg.Promote(t.Context(), "v1")
		must(t, err)
		time.Sleep(DefaultLease) // it hears of it
		gen, rest, promoted := order()
		if promoted <= was {
			t.Fatalf("order %d after %d", promoted, was)
		}
		must(t, r.rdb.HSet(t.Context(), members, "old", fmt.Sprint(gen, " ", was, " ", rest)).Err())
		must(t, r.rdb.HSet(t.Context(), r.q.Keys().Releases, "v1", noted).Err())
		time.Sleep(DefaultLease)
		if _, _, got := order(); got < promoted {
			t.Errorf("order %d, and it was promoted to %d", got, promoted)
		}
	})
}

// A process that was stopped and goes on: nothing it sent arrives, and then everything does.
func TestManager_pausedIsFencedAndComesBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		other, line := r.other(mini)
		b := other.node(Config{ID: "b", Release: "v1"})
		first := b.session()
		r.node(Config{ID: "a", Release: "v2"}).session()
		line.hold(t)
		wantCause(t, cause(t, first.Context()), ErrLeaseLost)
		time.Sleep(10 * time.Minute)
		line.release()
		second := b.session()
		time.Sleep(10 * time.Second)
		for range 3 { // requests to register from before the pause may each end a generation
			if second.Context().Err() != nil {
				second = b.session()
				time.Sleep(10 * time.Second)
			}
		}
		if second.Context().Err() != nil || second.Gen <= first.Gen {
			t.Fatalf("generation %d after %d, %v", second.Gen, first.Gen, context.Cause(second.Context()))
		}
		if id, _, _ := r.lead(); id != "a" {
			t.Fatalf("%q leads: coming back made an old release new", id)
		}
	})
}

func TestManager_joinsWhenReady(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		var asked atomic.Int64
		var healthy atomic.Bool
		n := r.node(Config{MinReady: 10 * time.Second, ReadyCheck: func(context.Context) error {
			asked.Add(1)
			if !healthy.Load() {
				return errors.New("cold")
			}
			return nil
		}})
		s := n.session()
		lead := leading(s)
		time.Sleep(time.Minute)
		if asked.Load() < 2 || len(lead.began) != 0 {
			t.Fatalf("asked %d times, %d terms", asked.Load(), len(lead.began))
		}
		healthy.Store(true)
		time.Sleep(9 * time.Second)
		if len(lead.began) != 0 {
			t.Fatal("it joined before min_ready had gone by")
		}
		healthy.Store(false)
		time.Sleep(time.Minute)
		if len(lead.began) != 0 {
			t.Fatal("it joined though it was not ready any more")
		}
		healthy.Store(true)
		time.Sleep(12 * time.Second)
		wait(t, lead.began, "term")

		healthy.Store(false)
		must(t, r.node(n.m.cfg.renamed("never")).leave()) // SIGTERM before it was ready
	})
}

func (c Config) renamed(id string) Config { c.ID = id; return c }

func TestManager_refusesABadConfig(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		if _, err := New(r.q.Client(), r.p.Namespace, Config{Lease: time.Millisecond}); err == nil {
			t.Fatal("a lease of a millisecond was taken")
		}
		if _, err := New(r.q.Client(), "", Config{}); err == nil {
			t.Fatal("an empty namespace was taken")
		}
		m, err := New(r.q.Client(), r.p.Namespace, Config{ID: "a"})
		must(t, err)
		if m.ID() != "a" || m.Lease() != 5*time.Second {
			t.Fatalf("%q %v", m.ID(), m.Lease())
		}
	})
}
