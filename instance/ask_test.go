package instance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func (r *rig) askResign(m member) View {
	r.Helper()
	v, err := r.reg.AskToResign(context.Background(), m.id, "ann@desk")
	must(r, err)
	return v
}

func (r *rig) askDrain(m member) View {
	r.Helper()
	v, err := r.reg.AskToDrain(context.Background(), m.id, "ann@desk")
	must(r, err)
	return v
}

// again registers a member as its process does when it lost its lease.
func (r *rig) again(m member, release string) (member, View) {
	r.Helper()
	gen, _, v, err := r.reg.Register(context.Background(), Config{ID: m.id, Release: release, Lease: time.Minute}, Past{Gen: m.gen, Order: 1})
	must(r, err)
	return member{m.id, gen}, v
}

// everyRule runs a test for each combination of rules.
func everyRule(t *testing.T, test func(t *testing.T, r *rig, lead Lead, take Consume, rules change)) {
	t.Helper()
	for _, lead := range []Lead{LeadNewest, LeadSticky} {
		for _, take := range []Consume{ConsumeNewest, ConsumeRelease, ConsumeAll} {
			t.Run(fmt.Sprintf("%s, %s", lead, take), func(t *testing.T) {
				t.Parallel()
				test(t, newRig(t, testredis.Real(t)), lead, take, func(c *Config) { c.Lead, c.Consume = lead, take })
			})
		}
	}
}

// By any rules, another instance leads in the same step. The instance that resigned works on as the rules allow, and leads again
// only when no other can.
func TestAskToResign_handsOverByEveryRule(t *testing.T) {
	t.Parallel()
	everyRule(t, func(t *testing.T, r *rig, lead Lead, take Consume, rules change) {
		s := r.up("standby", "v1", rules, standby)
		a := r.up("a", "v1", rules)
		_, err := r.reg.AskToResign(t.Context(), "a", "")
		r.wantErr(err, ErrNoOther) // a standby never leads
		first, other := r.up("b", "v1", rules), a
		if lead == LeadSticky {
			first, other = a, first
		}
		_, before, _ := r.lead()
		r.open(first)
		if v := r.askResign(first); v.Leader != other.id || v.Epoch <= before || !v.Open {
			t.Fatalf("%s resigned: %+v", first.id, v)
		}
		if b := r.beat(first); b.State != "ready" || b.Leader != other.id || b.May != (take != ConsumeNewest) {
			t.Fatalf("%s after it resigned: %+v", first.id, b)
		}
		r.ready(first) // it says so again when its connection broke
		r.wantLeader(other.id)
		r.askResign(first) // a request whose reply was lost
		r.wantLeader(other.id)

		third := r.up("c", "v1", rules)
		r.leave(third)
		r.wantLeader(other.id)
		if v := r.askResign(other); v.Leader != first.id {
			t.Fatalf("%s resigned, and the other one leads: %+v", other.id, v)
		}
		if v := r.askResign(first); v.Leader != other.id { // the last request counts
			t.Fatalf("%s resigned again: %+v", first.id, v)
		}
		if v := r.leave(other); v.Leader != first.id {
			t.Fatalf("no other can lead: %+v", v)
		}
		if v := r.up("d", "v1", rules); lead == LeadNewest {
			r.wantLeader(v.id)
			r.leave(v)
			r.wantLeader(first.id) // its resignation is over
		}
		if v := r.askResign(s); v.Leader != first.id {
			t.Fatalf("a standby resigned: %+v", v)
		}
	})
}

// An instance that resigned, and whose lease ran out, does not take the lead by coming back as the newest. A new process does.
func TestAskToResign_outlivesALostLease(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		b := r.up("b", "v1")
		a := r.up("a", "v1")
		r.prove(a)
		r.askResign(a)
		aDayLater := func() { must(t, r.rdb.Del(t.Context(), r.q.Keys().Asked).Err()) }
		for _, lose := range []func(){
			func() { r.expire(a, time.Second); r.beat(b) },
			func() { r.expire(a, time.Second); r.beat(b) },
			func() { aDayLater(); r.expire(a, time.Second); r.beat(b) },
			aDayLater, // by its own clock alone
		} {
			lose()
			a, _ = r.again(a, "v1")
			r.ready(a)
			r.wantLeader("b")
			if left := r.rdb.PTTL(t.Context(), r.q.Keys().Asked).Val(); left < 23*time.Hour || left > 24*time.Hour {
				t.Errorf("the request is kept for %v", left)
			}
		}
		r.leave(a)
		r.up("a", "v1")
		r.wantLeader("a")
		if n := r.rdb.HLen(t.Context(), r.q.Keys().Asked).Val(); n != 0 {
			t.Errorf("%d requests are left behind", n)
		}
	})
}

// To promote a release ends the resignation of its instances, unless another one of it can lead.
func TestAskToResign_endsWithAPromotion(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t))
	r.up("old", "v1")
	a := r.up("a", "v2")
	b := r.up("b", "v2")
	r.askResign(b)
	r.wantLeader("a")
	if v, err := r.reg.Promote(t.Context(), "v2"); err != nil || v.Leader != "a" {
		t.Fatalf("%+v, %v: a person asked b not to lead, and a is of that release", v, err)
	}
	r.leave(a)
	r.wantLeader("old")
	if v, err := r.reg.Promote(t.Context(), "v2"); err != nil || v.Leader != "b" {
		t.Fatalf("%+v, %v: b is the only one of the release", v, err)
	}
}

// A request that is refused changes nothing.
func TestAsk_refusesAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t))
	a, b := r.up("a", "v1"), r.up("b", "v1")
	r.askDrain(a)
	r.leave(a)
	before, member := len(r.events()), r.rdb.HGet(t.Context(), r.q.Keys().Members, "b").Val()
	for id, want := range map[string]error{"a": task.ErrNotFound, "": task.ErrNotFound} {
		_, err := r.reg.AskToDrain(t.Context(), id, "")
		r.wantErr(err, want)
		_, err = r.reg.AskToResign(t.Context(), id, "")
		r.wantErr(err, want)
	}
	if n := r.rdb.Exists(t.Context(), r.q.Keys().Asked).Val(); n != 0 || len(r.events()) != before {
		t.Errorf("a refused request left something behind: %d, %v", n, r.events())
	}
	if now := r.rdb.HGet(t.Context(), r.q.Keys().Members, "b").Val(); now != member || r.beat(b).State != "ready" {
		t.Errorf("b was %q, and is %q", member, now)
	}
}

// By any rules, the instance claims nothing from the moment of the request. Its runs go on, and another instance leads. The last
// instance drains too.
func TestAskToDrain_takesNoMoreWorkByEveryRule(t *testing.T) {
	t.Parallel()
	everyRule(t, func(t *testing.T, r *rig, _ Lead, _ Consume, rules change) {
		r.up("standby", "v1", rules, standby)
		a := r.up("a", "v1", rules)
		r.open(a)
		r.enqueue("t1")
		run := r.wantClaims(a, 1)
		b := r.up("b", "v1", rules)
		r.askResign(b) // if it led: the one that drains is the leader
		r.wantLeader("a")
		if v := r.askDrain(a); v.Leader != "b" || !v.Open {
			t.Fatalf("%+v", v)
		}
		r.enqueue("t2")
		r.wantClaims(a, 0)
		if beat := r.beat(a); beat.State != "draining" || beat.May {
			t.Fatalf("%+v", beat)
		}
		r.ready(a) // a late call changes nothing
		r.wantLeader("b")
		if reply, err := r.claim(a, queue.Settlement{ID: run[0].ID, Fence: run[0].Fence}); err != nil || len(reply.Void) != 0 {
			t.Fatalf("its run was not settled: %+v, %v", reply, err)
		}
		r.leave(a)
		if v := r.askDrain(b); v.Leader != "" {
			t.Fatalf("the last one drains: %+v", v)
		}
		r.up("c", "v1", rules)
		r.wantLeader("c")
	})
}

// The events say who asked, and what.
func TestAsk_isAnEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t))
	a, b := r.up("a", "v1"), r.up("b", "v1")
	r.askResign(b)
	r.askDrain(a)
	var got []string
	all, err := r.rdb.XRange(t.Context(), r.q.Keys().Events, "-", "+").Result()
	must(t, err)
	for _, e := range all {
		if what := fmt.Sprint(e.Values["event"]); strings.HasPrefix(what, "asked") {
			got = append(got, fmt.Sprint(what, ": ", e.Values["instance"], " by ", e.Values["by"]))
		}
	}
	if want := []string{"asked to resign: b by ann@desk", "asked to drain: a by ann@desk"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r.wantLeader("b")
}

// Requests leave: with the instance, or after a day, whether or not anything asks again.
func TestAsk_isKeptForADay(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t))
	k := r.q.Keys().Asked
	a, b := r.up("a", "v1"), r.up("b", "v1")
	must(t, r.rdb.HSet(t.Context(), k, "gone", "drain 1 1", "damaged", "x").Err())
	r.askResign(a)
	if got := r.rdb.HGet(t.Context(), k, "a").Val(); r.rdb.HLen(t.Context(), k).Val() != 1 || !strings.HasPrefix(got, fmt.Sprint("resign ", a.gen)) {
		t.Errorf("kept: %v", r.rdb.HGetAll(t.Context(), k).Val())
	}
	if ttl := r.rdb.PTTL(t.Context(), k).Val(); ttl <= 23*time.Hour || ttl > 24*time.Hour {
		t.Errorf("it expires in %v", ttl)
	}
	r.askDrain(b)
	r.leave(a)
	r.leave(b)
	if n := r.rdb.Exists(t.Context(), k).Val(); n != 0 {
		t.Errorf("left: %v", r.rdb.HGetAll(t.Context(), k).Val())
	}
}

// A process that was asked to drain ends as if it had got SIGTERM: Run returns nil, and it has deregistered.
func TestManager_drainsWhenAsked(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, _ *testredis.Miniredis) {
		a := r.node(Config{ID: "a"})
		s := a.session()
		lead := leading(s)
		wait(t, lead.began, "term")
		if err := a.m.Unready(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r.askDrain(member{id: "a"})
		wait(t, lead.ended, "end of the term")
		must(t, a.ended())
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("it left after %v: the message did not arrive", took)
		}
		if all := r.events(); all[len(all)-1] != "left a" {
			t.Errorf("events: %q", r.events())
		}
		if err := a.m.Unready(); err == nil || !strings.HasPrefix(err.Error(), "stopped") {
			t.Errorf("Unready: %v", err)
		}
	})
}

// A lost message delays a request by no more than a heartbeat.
func TestManager_hearsARequestWithTheNextHeartbeat(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		a := r.node(Config{ID: "a"})
		wait(t, leading(a.session()).began, "term")
		k := r.q.Keys()
		m := r.rdb.HGet(t.Context(), k.Members, "a").Val()
		began := time.Now()
		must(t, r.rdb.HSet(t.Context(), k.Members, "a", strings.Replace(m, " r ", " d ", 1)).Err()) // what ask.lua does, without its message
		must(t, a.ended())
		if took := time.Since(began); took > DefaultLease/5+100*time.Millisecond {
			t.Errorf("it left after %v", took)
		}
	})
}

// A process that is frozen when it is asked to drain, and whose lease runs out, drains when it goes on: it takes no work under a new
// generation, and ends.
func TestManager_drainsAfterItWasFrozen(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		far, line := r.other(mini)
		a := far.node(Config{ID: "a"})
		first := a.session()
		wait(t, leading(first).began, "term")
		b := r.node(Config{ID: "b"})
		b.session()
		synctest.Wait() // else a heartbeat that is under way hears of the request, and a leaves before it is frozen
		line.hold(t)
		r.askDrain(member{id: "a"})
		time.Sleep(2 * DefaultLease)
		if list, err := r.reg.List(t.Context()); err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v: the frozen instance is still there", list, err)
		}
		line.release()
		must(t, a.ended())
		for len(a.sessions) > 0 {
			if s := a.session(); s.View().May {
				t.Error("it could claim under a new generation")
			}
		}
		r.wantLeader("b")
		if r.rdb.Exists(t.Context(), r.q.Keys().Asked).Val() != 0 {
			t.Error("the request is left behind")
		}
	})
}

// A process that crashes after the request and before it hears does not harm the one that a supervisor starts in its place, even with
// the same ID.
func TestAskToDrain_isNotForTheNextProcess(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		b := r.up("b", "v1")
		a := r.up("a", "v1")
		r.askDrain(a)
		r.expire(a, time.Second)
		r.beat(b)
		a = r.up("a", "v1")
		r.wantLeader("a")
		if beat := r.beat(a); beat.State != "ready" {
			t.Errorf("it is %s", beat.State)
		}
		if n := r.rdb.Exists(t.Context(), r.q.Keys().Asked).Val(); n != 0 {
			t.Error("the request is left behind")
		}
	})
}

// A program that writes rubbish into the requests ends no instance.
func TestAsk_damagedRequestsAreIgnored(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t))
	for i, rubbish := range []string{"", "drain", "drain x 1", "drain 1", "\x00", strings.Repeat("9", 400)} {
		a := r.up(fmt.Sprint("a", i), "v1")
		must(t, r.rdb.HSet(t.Context(), r.q.Keys().Asked, a.id, rubbish).Err())
		_, v := r.again(a, "v1")
		if v.State != "starting" {
			t.Errorf("after %q: %s", rubbish, v.State)
		}
	}
}
