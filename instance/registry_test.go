package instance

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestRegister_generationsAndEpochsRise(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		var gens, epochs []int64
		for _, id := range []string{"a", "b", "c"} {
			m := r.up(id, "")
			gens, epochs = append(gens, m.gen), append(epochs, r.wantLeader(id))
		}
		testredis.Eventually(t, testTimeout, func() bool { // three a millisecond run ahead of the clock
			now, err := r.q.Now(t.Context())
			return err == nil && now.UnixMilli() > max(gens[2], epochs[2])
		}, "the clock of redis moves")
		r.forget()
		m := r.up("d", "")
		gens, epochs = append(gens, m.gen), append(epochs, r.wantLeader("d"))
		if !rising(gens) || !rising(epochs) {
			t.Fatalf("generations %v and epochs %v do not rise", gens, epochs)
		}

		r.forget()
		known := gens[3] + 1e9 // a Redis whose clock was far ahead once
		gen, _, _, err := r.reg.Register(t.Context(), Config{ID: "e", Lease: time.Minute}, Past{Gen: known})
		must(t, err)
		if gen <= known {
			t.Fatalf("generation %d after a Redis that forgot, though %d was known", gen, known)
		}
		if next := r.join("f", ""); next.gen <= gen {
			t.Fatalf("generation %d after %d", next.gen, gen)
		}
	})
}

func rising(list []int64) bool {
	for i := 1; i < len(list); i++ {
		if list[i] <= list[i-1] {
			return false
		}
	}
	return true
}

func TestRegister_neitherLeadsNorClaimsBeforeReady(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.enqueue("x")
		old := r.up("old", "", consume(ConsumeAll))
		r.open(old)
		m := r.join("new", "", consume(ConsumeAll))
		r.beat(m)
		r.wantLeader("old")
		r.wantClaims(m, 0)
		r.ready(m)
		r.wantLeader("new")
		r.wantClaims(m, 1)
	})
}

func TestRegister_againOrphansTheEarlierGeneration(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.enqueue("x")
		first := r.up("a", "v1")
		r.open(first)
		r.wantClaims(first, 1)

		second := r.join("a", "v1")
		r.wantLeader("")
		if _, err := r.claim(first); err == nil {
			t.Fatal("the earlier generation still claims")
		} else {
			r.wantErr(err, queue.ErrFenced)
		}
		_, err := r.reg.Heartbeat(t.Context(), first.id, first.gen, time.Minute, time.Time{}, "")
		r.wantErr(err, queue.ErrFenced)
		_, err = r.reg.Ready(t.Context(), first.id, first.gen, DefaultLease)
		r.wantErr(err, queue.ErrFenced)
		r.leave(first) // changes nothing

		r.ready(second)
		r.wantLeader("a")
		if got := r.beat(second).Orphans; !slices.Equal(got, []int64{first.gen}) {
			t.Fatalf("orphans %v, want %d", got, first.gen)
		}
	})
}

func TestRegister_ofAnotherReleaseEndsTheEarlierOne(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.up("pod-0", "v1")
		two := r.up("pod-1", "v2")
		r.up("pod-0", "v2") // v1 is absent from now on
		r.wantLeader("pod-0")
		r.leave(two)
		r.up("pod-1", "v1")
		r.wantLeader("pod-1")
	})
}

func TestHeartbeat_renewsAndFences(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		m := r.up("a", "")
		r.expire(m, -time.Second) // a second is left
		r.beat(m)
		list, err := r.reg.List(t.Context())
		must(t, err)
		if left := list[0].Lease; left < 30*time.Second {
			t.Fatalf("%v of the lease are left after a heartbeat", left)
		}
		r.expire(m, 0)
		_, err = r.reg.Heartbeat(t.Context(), m.id, m.gen, time.Minute, time.Time{}, "")
		r.wantErr(err, queue.ErrFenced)
		_, err = r.reg.Ready(t.Context(), m.id, m.gen, DefaultLease)
		r.wantErr(err, queue.ErrFenced)
		_, err = r.reg.Open(t.Context(), r.term(m))
		r.wantErr(err, queue.ErrFenced)
		_, _, err = r.reg.Declare(t.Context(), r.term(m))
		r.wantErr(err, queue.ErrFenced)
	})
}

func TestHeartbeat_ofAnyInstanceReplacesADeadLeader(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.up("a", "")
		r.up("b", "")
		watcher := r.up("s", "", standby)
		c := r.up("c", "")
		before := r.wantLeader("c")
		r.expire(c, time.Millisecond)
		b := r.beat(watcher)
		if b.Leader != "b" || b.Epoch <= before {
			t.Fatalf("the view names %q in epoch %d, want b after %d", b.Leader, b.Epoch, before)
		}
		if !slices.Contains(b.Orphans, c.gen) {
			t.Fatalf("orphans %v: not told to who found them (%d)", b.Orphans, c.gen)
		}
		if list, _ := r.reg.List(t.Context()); len(list) != 3 {
			t.Fatalf("%d instances are left, want 3", len(list))
		}
	})
}

func TestDeregister_withRunningTasksLeavesAnOrphan(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a := r.up("a", "")
		r.wantClaims(a, 0)
		b := r.up("b", "")
		r.open(b)
		r.leave(a) // ran nothing
		if got := r.beat(b).Orphans; len(got) != 0 {
			t.Fatalf("orphans %v of an instance that ran nothing", got)
		}
		r.enqueue("x")
		r.wantClaims(b, 1)
		c := r.up("c", "")
		r.leave(b)
		r.leave(b)
		if got := r.beat(c).Orphans; !slices.Equal(got, []int64{b.gen}) {
			t.Fatalf("orphans %v, want %d", got, b.gen)
		}
		if _, err := r.claim(b); err == nil {
			t.Fatal("claims after it left")
		}
		r.leave(c)
		r.wantLeader("")
	})
}

func TestResign_isFinal(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.up("a", "")
		b := r.up("b", "")
		if v := r.resign(b); v.Leader != "a" {
			t.Fatalf("%q leads after b resigned", v.Leader)
		}
		r.ready(b) // a request that was held up on its way
		r.wantLeader("a")
		r.beat(b)
		r.wantLeader("a")
	})
}

func TestRegistry_writesEvents(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a := r.up("a", "v1")
		b := r.up("b", "v2")
		r.expire(b, time.Millisecond)
		r.beat(a)
		r.resign(a)
		r.leave(a)
		want := []string{
			"joined a", "ready a", "leader a", "joined b", "ready b", "leader b", "lost b", "leader a",
			"draining a", "no leader a", "left a",
		}
		if got := r.events(); !slices.Equal(got, want) {
			t.Fatalf("events\n%q, want\n%q", got, want)
		}
	})
}

func TestRegistry_refusesABadNamespace(t *testing.T) {
	t.Parallel()
	if _, err := NewRegistry(nil, "a b"); err == nil {
		t.Fatal("a namespace with a space was taken")
	}
}

func TestRegistry_givesUpWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	s := testredis.Private(t)
	r := rigOf(t, s.Client(), "ns") // a client that does not listen to contexts, which is the default
	m := r.up("a", "")
	s.Pause()
	defer s.Resume()
	ctx, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	began := time.Now()
	_, err := r.reg.Heartbeat(ctx, m.id, m.gen, time.Minute, time.Time{}, "")
	r.wantErr(err, task.ErrUnreachable)
	if took := time.Since(began); took > 2*time.Second {
		t.Fatalf("gave up after %v", took)
	}
}
