package instance

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
)

// A heartbeat finds out that Redis has gone back to a moment before one that it had answered, and one that joins again
// that it came back empty. Each says so, once.
func TestLoss_isFoundAndReported(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		r := newRig(t, rdb)
		gen, _, v, err := r.reg.Register(ctx, Config{ID: "a", Lease: time.Minute}, Past{})
		must(t, err)
		if v.Forgot {
			t.Error("the first to join found a loss")
		}
		beat := func(seen time.Time) Beat {
			t.Helper()
			b, err := r.reg.Heartbeat(ctx, "a", gen, time.Minute, seen, "")
			must(t, err)
			return b
		}
		first := beat(v.Now)
		if first.Forgot {
			t.Error("nothing was lost, and a heartbeat says so")
		}
		kept := first.Now
		seen := first.Now.Add(time.Second) // a heartbeat that was answered and is not in this Redis
		b := beat(seen)
		if !b.Forgot || !b.Kept.Equal(kept) {
			t.Errorf("forgot %v, kept %v; want %v", b.Forgot, b.Kept, kept)
		}
		if b := beat(b.Now); b.Forgot {
			t.Error("the same loss is found again")
		}

		r.forget()
		if _, err := r.reg.Heartbeat(ctx, "a", gen, time.Minute, seen, ""); err == nil {
			t.Fatal("a Redis that came back empty knows the instance")
		}
		_, _, v, err = r.reg.Register(ctx, Config{ID: "a", Lease: time.Minute}, Past{Gen: gen, Seen: seen})
		must(t, err)
		if !v.Forgot || !v.Kept.IsZero() {
			t.Errorf("forgot %v, kept %v; want that nothing was kept", v.Forgot, v.Kept)
		}
		if got := r.events(); len(got) != 2 || got[0] != "lost writes a" || got[1] != "joined a" {
			t.Errorf("events %q", got)
		}
	})
}

// A clock that is set back is no loss.
func TestLoss_isNotAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		ctx := t.Context()
		r := newRig(t, rdb)
		m := r.join("a", "")
		seen := r.beat(m).Now.Add(time.Hour)
		must(t, r.rdb.HSet(ctx, r.q.Keys().Meta, "beat", seen.UnixMilli()).Err()) // written before the clock was set back
		for range 2 {
			b, err := r.reg.Heartbeat(ctx, m.id, m.gen, time.Minute, seen, "")
			must(t, err)
			if b.Forgot {
				t.Error("it was taken for a loss")
			}
		}
	})
}

// The session knows of the loss until it is dealt with, and its scheduler is called.
func TestLoss_callsTheScheduler(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := rigOf(t, srv.Client(), "ns")
	n := r.node(Config{Lease: 2 * time.Second})
	s := n.session()
	ctx, k := context.Background(), r.q.Keys()
	testredis.Eventually(t, testTimeout, func() bool { return r.rdb.PubSubNumSub(ctx, k.Wake).Val()[k.Wake] == 1 }, "it listens")
	score, err := r.rdb.ZScore(ctx, k.Instances, s.ID).Result()
	must(t, err)
	score -= 100 // a replica that was behind has this score
	testredis.Eventually(t, testTimeout, func() bool {
		must(t, r.rdb.ZAdd(ctx, k.Instances, redis.Z{Score: score, Member: s.ID}).Err())
		l, ok := s.Loss()
		return ok && l.Kept.UnixMilli() == int64(score)-2000 && l.Known.After(l.Kept)
	}, "it finds the loss")
	testredis.Eventually(t, testTimeout, s.Reconnected, "the scheduler is told to take stock")
	must(t, n.leave())
	l, _ := s.Loss()
	s.lose(Loss{Kept: l.Kept, Known: l.Known.Add(time.Second)})
	s.SettleLoss(Loss{Kept: l.Kept.Add(-time.Hour)})
	if _, ok := s.Loss(); !ok {
		t.Error("another was dealt with, and this one is gone")
	}
	l, _ = s.Loss()
	s.SettleLoss(l)
	if l, ok := s.Loss(); ok {
		t.Errorf("dealt with, and still there: %+v", l)
	}
}

func TestLoss_twoMakeOneThatBeganWithTheFirst(t *testing.T) {
	t.Parallel()
	s, at := newSession("a", 1, ""), func(sec int64) time.Time { return time.Unix(sec, 0) }
	s.lose(Loss{Kept: at(5), Known: at(6)})
	s.lose(Loss{Kept: at(7), Known: at(9)})
	if l, ok := s.Loss(); !ok || l != (Loss{Kept: at(5), Known: at(6)}) {
		t.Errorf("%v %+v", ok, l)
	}
	s.lose(Loss{Known: at(10)}) // came back empty
	if l, _ := s.Loss(); l != (Loss{Known: at(6)}) {
		t.Errorf("%+v", l)
	}
}

// An instance whose registration is lost says from when on writes are lost: from the registration on at the latest. It does not
// say that Redis is empty. If another instance has registered with its ID, and left, it says nothing.
func TestLoss_ofARegistration(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		for name, c := range map[string]struct {
			gen  int64 // what Redis has given since
			want bool
		}{"lost": {-1, true}, "left": {0, false}} {
			t.Run(name, func(t *testing.T) {
				ctx := t.Context()
				r := newRig(t, rdb)
				k := r.q.Keys()
				other, m := r.up("other", ""), r.join("m", "")
				seen := r.beat(m).Now
				for seen.UnixMilli() <= m.gen { // registered in one millisecond, two have generations that lie ahead of the clock
					seen = r.beat(m).Now
				}
				r.beat(other)
				must(t, rdb.ZRem(ctx, k.Instances, "m").Err())
				must(t, rdb.HDel(ctx, k.Members, "m").Err())
				must(t, rdb.HIncrBy(ctx, k.Meta, "gen", c.gen).Err())
				_, _, v, err := r.reg.Register(ctx, Config{ID: "m", Lease: time.Minute}, Past{Gen: m.gen, Seen: seen})
				must(t, err)
				if v.Forgot != c.want || c.want && (v.Kept.IsZero() || v.Kept.UnixMilli() > m.gen) {
					t.Errorf("forgot: %v, want %v; kept %s, want at most %d", v.Forgot, c.want, v.Kept, m.gen)
				}
			})
		}
	})
}
