package instance

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

func TestRank_withoutReleasesTheNewestLeads(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.up("a", "")
		b := r.join("b", "")
		c := r.up("c", "")
		r.ready(b) // ready later, but older
		r.wantLeader("c")
		r.leave(c)
		r.wantLeader("b")
	})
}

func TestRank_standbyAndDrainingNeverLead(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		s := r.up("s", "v9", standby)
		r.beat(s)
		r.wantLeader("")
		a := r.up("a", "v1")
		r.resign(a)
		r.beat(a)
		r.beat(s)
		r.wantLeader("")
		r.up("b", "v0")
		r.wantLeader("b")
	})
}

func TestRank_aReleaseIsNewerTheLaterItWasFirstSeen(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.up("z", "")
		r.up("a", "v2")
		r.wantLeader("a") // any release is newer than none
		r.up("y", "")
		r.wantLeader("a")
		r.up("b", "v1") // the name says nothing
		r.wantLeader("b")
		r.up("c", "v2") // the newest instance, but of the older release
		r.wantLeader("b")
	})
}

// Another program wrote the largest order there is. The next orders are numbers that all scripts read.
func TestRank_isANumberThatScriptsRead(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		k := r.p.Keys()
		must(t, rdb.HSet(t.Context(), k.Meta, "order", "8999999999999998", "gen", "8999999999999998", "epoch", "8999999999999998").Err())
		var gens []int64
		for _, release := range []string{"v1", "v2", "v3"} {
			gens = append(gens, r.up(release, release).gen)
		}
		orders := rdb.HGetAll(t.Context(), k.Releases).Val()
		for i, text := range append(rdb.HMGet(t.Context(), k.Meta, "order", "gen", "epoch").Val(), orders["v1"], orders["v2"], orders["v3"]) {
			number, _, _ := strings.Cut(fmt.Sprint(text), " ")
			if n, err := strconv.ParseInt(number, 10, 64); err != nil || n < 1 || n >= 9e15 {
				t.Errorf("%d: %v", i, text)
			}
		}
		if orders["v2"] >= orders["v3"] || gens[1] >= gens[2] {
			t.Errorf("do not rise: %v, %v", orders, gens)
		}
	})
}

func TestRank_restartOfAnOldReleaseInARolloutIsNotNewer(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a := r.up("a", "v1")
		b := r.up("b", "v1")
		n := r.up("n", "v2")
		r.leave(a)
		r.up("a2", "v1") // in order, while b lives
		r.wantLeader("n")

		r.leave(member{"a2", r.genOf("a2")})
		r.expire(b, time.Second) // the last of v1 crashes
		r.beat(n)
		r.up("b2", "v1")
		r.wantLeader("n")
	})
}

func (r *rig) genOf(id string) int64 {
	r.Helper()
	list, err := r.reg.List(r.Context())
	must(r, err)
	for _, i := range list {
		if i.ID == id {
			return i.Generation
		}
	}
	r.Fatalf("no instance %s", id)
	return 0
}

// Being lost is not leaving: a supervisor that waits for five minutes between two tries does not roll back.
func TestRank_aReleaseThatWasLostIsAsOldAsItWas(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		b := r.up("b", "v1")
		n := r.up("n", "v2")
		r.expire(b, 5*time.Minute)
		r.beat(n)
		b2 := r.up("b2", "v1")
		r.wantLeader("n")

		// The same if all were lost, and the older is the first to be back.
		r.prove(n)
		r.expire(n, releaseMemory-time.Minute)
		r.expire(b2, releaseMemory-time.Minute)
		r.up("b3", "v1")
		r.wantLeader("b3")
		n2 := r.up("n2", "v2")
		r.wantLeader("n2")

		r.leave(n2) // to roll back, an operator stops the newer one
		r.wantLeader("b3")
		r.up("n3", "v2")
		r.wantLeader("n3")
	})
}

func TestRank_aReleaseLostForADayIsNewWhenItReturns(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		b := r.up("b", "v1")
		n := r.up("n", "v2")
		r.expire(b, releaseMemory+time.Second)
		r.beat(n)
		r.up("b2", "v1")
		r.wantLeader("b2")
	})
}

// An instance that was killed while it drained had been told to go.
func TestRank_whatIsLostWhileItDrainsHasLeft(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		b := r.up("b", "v1")
		n := r.up("n", "v2")
		r.resign(b)
		r.expire(b, time.Millisecond)
		r.beat(n)
		r.up("b2", "v1")
		r.wantLeader("b2")
	})
}

func TestRank_releasesLongAbsentAreForgotten(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		for _, release := range []string{"v1", "v2", "v3", "v4"} {
			r.expire(r.up("i-"+release, release), 2*releaseMemory)
		}
		r.up("a", "v5")
		if left, _ := rdb.HKeys(t.Context(), r.q.Keys().Releases).Result(); len(left) != 1 {
			t.Fatalf("releases %q are remembered, want only v5", left)
		}
	})
}

// A release for each start, and none of them stopped in order: the last hundred are remembered.
func TestRank_notEveryLostReleaseIsRemembered(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		for i := range 150 {
			r.expire(r.up(fmt.Sprint("i", i), fmt.Sprint("v", i)), time.Hour)
		}
		left, err := rdb.HGetAll(t.Context(), r.q.Keys().Releases).Result()
		must(t, err)
		if _, first := left["v0"]; first || len(left) > 102 || left["v148"] == "" {
			t.Fatalf("%d releases are remembered, the first among them: %v", len(left), first)
		}
	})
}

func TestPromote_makesAReleaseTheNewest(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		promote := func(release string, want queue.Term) {
			t.Helper()
			got, err := r.reg.Promote(t.Context(), release)
			must(t, err)
			if got.Leader != want.Instance || got.LeaderGen != want.Gen {
				t.Fatalf("after promoting %s %s (%d) leads, want %+v", release, got.Leader, got.LeaderGen, want)
			}
		}
		a := r.up("a", "v1", consume(ConsumeRelease))
		mate := r.up("mate", "v1", consume(ConsumeRelease))
		b := r.up("b", "v2", consume(ConsumeRelease))
		epoch := r.wantLeader("b")
		promote("v1", r.term(mate))
		if now := r.wantLeader("mate"); now <= epoch {
			t.Fatalf("epoch %d after %d", now, epoch)
		}
		promote("v1", r.term(mate)) // which leads, and goes on in the same epoch
		r.open(mate)
		r.want = 1
		r.enqueue("1", "2", "3")
		r.wantClaims(a, 1) // of the leader's release still
		r.wantClaims(b, 0)
		r.up("c", "v2") // the release that was newer
		r.wantLeader("mate")

		// A release that was lost, for when it returns.
		x := r.up("x", "v3")
		r.expire(x, time.Hour)
		r.beat(a)
		promote("v2", r.term(member{"c", r.genOf("c")}))
		promote("v3", r.term(member{"c", r.genOf("c")}))
		r.up("x2", "v3")
		r.wantLeader("x2")
		if _, err := r.reg.Promote(t.Context(), "v9"); !errors.Is(err, task.ErrNotFound) {
			t.Fatalf("an unknown release: %v", err)
		}
	})
}

// A rollback does not wait for the last runs of the release that it brings back.
func TestRank_aReleaseIsNewWhileItsLastInstancesDrain(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a, b := r.up("a", "v1"), r.up("b", "v1")
		r.up("new", "v2")
		r.resign(a)
		r.up("c", "v1") // b is there
		r.wantLeader("new")
		r.resign(b)
		r.up("d", "v1") // c is
		r.wantLeader("new")
	})
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a, b := r.up("a", "v1"), r.up("b", "v1")
		r.up("new", "v2")
		r.resign(a)
		r.resign(b)
		r.up("c", "v1")
		r.wantLeader("c")
		r.leave(a)
		r.leave(b)
		r.up("d", "v2")
		r.wantLeader("c")
	})
}

func TestRank_aProcessThatComesBackIsAsOldAsItWas(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		back := func(id, release string, had member, order int64) {
			t.Helper()
			c := Config{ID: id, Release: release, Lead: LeadNewest, Consume: ConsumeNewest, Lease: time.Minute}
			gen, got, _, err := r.reg.Register(t.Context(), c, Past{Gen: had.gen, Order: order})
			must(t, err)
			if got != order || gen <= had.gen {
				t.Fatalf("%s is back with order %d and generation %d, had %d and %d", id, got, gen, order, had.gen)
			}
			r.ready(member{id, gen})
		}
		one := r.up("one", "v1")
		two := r.up("two", "v2")
		list, err := r.reg.List(t.Context())
		must(t, err)
		order1, order2 := list[1].Order, list[0].Order

		// Paused for long, while the other went on.
		r.expire(one, 2*releaseMemory)
		r.beat(two)
		back("one", "v1", one, order1)
		r.wantLeader("two")

		// Redis lost its memory: the first instance to come back leads.
		r.forget()
		back("two", "v2", two, order2)
		back("one", "v1", one, order1)
		r.wantLeader("two")
		r.up("three", "v3")
		r.wantLeader("three")
	})
}

func TestSticky_movesOnceAtARollout(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		a := r.up("a", "v1", sticky)
		epoch := r.wantLeader("a")
		b := r.up("b", "v1", sticky) // scaling up
		c := r.up("c", "v1", sticky)
		if got := r.wantLeader("a"); got != epoch {
			t.Fatalf("epoch %d after scaling up, was %d", got, epoch)
		}
		x := r.up("x", "v2", sticky)
		epoch = r.wantLeader("x")
		for _, old := range []member{a, b, c} {
			r.up("for-"+old.id, "v2", sticky)
			r.resign(old)
			r.leave(old)
			r.beat(x)
		}
		if got := r.wantLeader("x"); got != epoch {
			t.Fatalf("epoch %d after the rollout, was %d", got, epoch)
		}
		r.leave(x)
		r.wantLeader("for-c")
	})
}

func TestSticky_holdsByTheRuleOfTheNewest(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		r := newRig(t, rdb)
		r.up("a", "v1", sticky)
		r.up("b", "v1") // newest
		r.wantLeader("b")
		r.up("c", "v1", sticky)
		r.wantLeader("b")
	})
}
