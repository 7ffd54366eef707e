package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

func TestAcquire_hasOneHolderAndARisingFence(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		var fence int64
		for range 5 {
			h := r.take()
			if h.Fence() <= fence {
				t.Errorf("fence %d after %d", h.Fence(), fence)
			}
			fence = h.Fence()
			if held := r.wantHeld(); held.For <= 0 || held.For > r.opts.TTL || held.Name != name {
				t.Errorf("held: %+v", held)
			}
			r.lives(h)
			r.release(h)
			r.ends(h, lock.ErrReleased)
			must(t, h.Release(context.Background())) // again: the same answer
		}
	})
}

func TestAcquire_fenceRisesAfterRedisLostIt(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		h := r.take()
		r.do("DEL", r.key("lock"), r.key("fence"))
		if next := r.take(); next.Fence() <= h.Fence() {
			t.Errorf("fence %d after %d", next.Fence(), h.Fence())
		}
	})
}

func TestAcquire_namesAndNamespacesDoNotMeet(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	ns := testredis.Namespace(t)
	for _, where := range [][2]string{{ns, "a"}, {ns, "b"}, {ns + ":a", "a"}, {"", ns}} {
		h, err := lock.TryAcquire(t.Context(), rdb, where[1], lock.Options{Namespace: where[0]})
		must(t, err)
		defer h.Release(context.Background())
	}
}

func TestOptions_refusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	for _, o := range []lock.Options{
		{TTL: time.Millisecond}, {TTL: 2 * time.Hour}, {Wait: -1}, {AtMostFor: -1}, {AtLeastFor: -1}, {AtLeastFor: 25 * time.Hour},
		{AtLeastFor: 2 * time.Second, AtMostFor: time.Second}, {Namespace: "a|b"},
	} {
		if _, err := lock.New(rdb, o); err == nil {
			t.Errorf("%+v was taken", o)
		}
		if _, err := lock.Acquire(t.Context(), rdb, name, o); err == nil {
			t.Errorf("%+v was taken by Acquire", o)
		}
	}
	if _, err := lock.TryAcquire(t.Context(), rdb, "a}b", lock.Options{}); err == nil {
		t.Error("a name with a brace was taken")
	}
	if _, err := lock.Quorum(nil, lock.Options{}); err == nil {
		t.Error("a quorum of none was taken")
	}
}

func TestTryAcquire_tellsHeldFromUnreachable(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := newRig(t, srv.Client(func(o *redis.Options) { o.MaxRetries = -1 }))
	r.opts.TTL = 4 * time.Second
	r.take()
	r.wantHeld()
	srv.Pause()
	_, err := lock.TryAcquire(t.Context(), r.rdb, name, r.opts)
	wantErr(t, err, lock.ErrUnreachable)
	srv.Resume()
	srv.Kill()
	_, err = lock.TryAcquire(t.Context(), r.rdb, name, r.opts)
	wantErr(t, err, lock.ErrUnreachable)
	if errors.Is(err, lock.ErrHeld) {
		t.Errorf("%v is held, too", err)
	}
	_, err = lock.Acquire(t.Context(), r.rdb, name, r.opts) // a caller that would wait gets the same error
	wantErr(t, err, lock.ErrUnreachable)
}

func TestLock_isKeptForAsLongAsItIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client)
		h := r.take()
		for range 200 {
			time.Sleep(r.opts.TTL / 3) // of the bubble
			if left := mini.TTL(r.key("lock")); left < r.opts.TTL/10 {
				t.Fatalf("the lease has %v left", left)
			}
		}
		r.lives(h)
		r.release(h)
	})
}

// The context ends while Redis still keeps everybody else out.
func TestLock_contextEndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client)
		h := r.take()
		time.Sleep(10 * r.opts.TTL)
		mini.SetError("LOADING it cannot be asked")
		r.ends(h, lock.ErrLost)
		mini.SetError("")
		if !mini.Exists(r.key("lock")) {
			t.Fatal("the lease ran out first")
		}
		wantErr(t, h.Release(context.Background()), lock.ErrLost)
	})
}

func TestLock_contextEndsBeforeTheLease_whenRedisHangs(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := newRig(t, srv.Client(), func(o *lock.Options) { o.TTL = longTTL })
	h := r.take()
	srv.Pause()
	at := time.Now() // every renewal was asked for before
	r.ends(h, lock.ErrLost)
	if took := time.Since(at); took > r.opts.TTL {
		t.Errorf("the context lived for %v after the last renewal, the lease for %v", took, r.opts.TTL)
	}
	srv.Resume()
	wantErr(t, h.Release(context.Background()), lock.ErrLost)
}

// A lease begins when Redis grants it, and that may be long before this is heard.
func TestLock_slowReplyDoesNotLengthenTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client)
		r.release(r.take()) // Redis knows the script from now on: one call
		const late = 400 * time.Millisecond
		mini.Client.AddHook(slow{late})
		asked := time.Now()
		h := r.take()
		mini.SetError("LOADING it cannot be asked")
		<-h.Context().Done()
		if took := time.Since(asked); took > r.opts.TTL*9/10 {
			t.Errorf("the context ended %v after asking, want %v", took, r.opts.TTL*9/10)
		}
		wantErr(t, h.Release(context.Background()), lock.ErrLost)
	})
}

// So does a renewal.
func TestLock_slowReplyToAHeartbeatDoesNotLengthenTheLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client)
		r.release(r.take())
		h := r.take()
		mini.Client.AddHook(slow{400 * time.Millisecond})
		time.Sleep(5*r.opts.TTL + 100*time.Millisecond)
		mini.SetError("LOADING it cannot be asked")
		<-h.Context().Done()
		if left := mini.TTL(r.key("lock")); left < r.opts.TTL/10 {
			t.Errorf("when the context ended the lease had %v left", left)
		}
		wantErr(t, h.Release(context.Background()), lock.ErrLost)
	})
}

func TestLock_endsWhenItWasTakenAway(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		h := r.take()
		r.do("DEL", r.key("lock"))
		at := time.Now()
		r.ends(h, lock.ErrLost)
		if took := time.Since(at); took > r.opts.TTL {
			t.Errorf("noticed after %v, want within a heartbeat or two", took)
		}
	})
}

func TestRelease_ofALostLockLeavesTheNextHolderAlone(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		h := r.take()
		r.do("DEL", r.key("lock"))
		next := r.take()
		token := r.do("GET", r.key("lock"))
		wantErr(t, h.Release(context.Background()), lock.ErrLost)
		wantErr(t, h.Release(context.Background()), lock.ErrLost)
		if now := r.do("GET", r.key("lock")); now != token {
			t.Errorf("the token was %v and is %v", token, now)
		}
		r.wantHeld()
		r.release(next)
	})
}

func TestRelease_worksWhenItsContextHasEnded(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		ctx, cancel := context.WithCancelCause(t.Context())
		h, err := lock.Acquire(ctx, rdb, name, r.opts)
		must(t, err)
		why := errors.New("enough")
		cancel(why)
		r.ends(h, why)
		r.wantHeld() // until it is released
		must(t, h.Release(ctx))
		r.release(r.take())
	})
}

func TestRelease_bearsAnOutage(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := newRig(t, srv.Client(), func(o *lock.Options) { o.TTL = 8 * time.Second })
	h := r.take()
	srv.Pause()
	released := make(chan error, 1)
	go func() { released <- h.Release(context.Background()) }()
	<-h.Context().Done()
	srv.Resume()
	must(t, <-released)
	if n := r.do("EXISTS", r.key("lock")); n != int64(0) {
		t.Error("the lock is still there")
	}
}

func TestAtMostFor_endsContextAndHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client, func(o *lock.Options) { o.AtMostFor = 30 * time.Second })
		at := time.Now()
		h := r.take()
		time.Sleep(29 * time.Second)
		r.lives(h)
		r.ends(h, lock.ErrAtMost)
		if took := time.Since(at); took > 30*time.Second {
			t.Errorf("held for %v", took)
		}
		time.Sleep(r.opts.TTL)
		next := r.take() // although the first never released it
		wantErr(t, h.Release(context.Background()), lock.ErrLost)
		r.release(next)
	})
}

// Two machines whose clocks differ start the same short job.
func TestAtLeastFor_aShortJobRunsOnce(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb, func(o *lock.Options) { o.AtLeastFor = 3 * time.Second })
		at := time.Now()
		r.release(r.take())
		if left := r.wantHeld().For; left <= 0 || left > 3*time.Second {
			t.Errorf("held for %v", left)
		}
		r.opts.AtLeastFor = 0
		r.release(r.take())
		if took := time.Since(at); took < 3*time.Second-5*time.Millisecond { // Redis counts from the millisecond it was in
			t.Errorf("free again after %v", took)
		}
	})
}

func TestAtLeastFor_holdsIfTheHolderDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client, func(o *lock.Options) { o.AtLeastFor = time.Minute })
		h := r.take()
		if left := mini.TTL(r.key("lock")); left != time.Minute {
			t.Errorf("it would be free after %v", left)
		}
		time.Sleep(20 * time.Second) // a heartbeat shortens nothing
		if left := mini.TTL(r.key("lock")); left < 39*time.Second || left > 41*time.Second {
			t.Errorf("after 20s it would be free after %v", left)
		}
		r.release(h)
		r.wantHeld()
	})
}

func TestFromContext_isTheLockOneWorksUnder(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Client(t))
	h := r.take()
	if got := lock.FromContext(h.Context()); got != h || got.Name() != name {
		t.Errorf("%v", got)
	}
	if got := lock.FromContext(t.Context()); got != nil {
		t.Errorf("%v outside of a lock", got)
	}
}

// Everything in Redis goes away by itself.
func TestKeys_allExpire(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb)
		r.take()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		waits := r.waiting(ctx, r.locker())
		r.inLine(1)
		for _, kind := range []string{"lock", "fence", "wait"} {
			if ms, _ := r.do("PTTL", r.key(kind)).(int64); ms <= 0 {
				t.Errorf("%s: PTTL is %d", kind, ms)
			}
		}
		cancel()
		wantErr(t, (<-waits).err, context.Canceled)
		r.inLine(0)
	})
}

// A fence is kept for a day after its holder, however long that one held the lock.
func TestLock_fenceOutlivesALongTerm(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client, func(o *lock.Options) { o.TTL = time.Hour })
		h := r.take()
		time.Sleep(48 * time.Hour)
		r.lives(h)
		if left := mini.TTL(r.key("fence")); left < 24*time.Hour {
			t.Errorf("after two days the fence has %v left", left)
		}
		r.release(h)
	})
}

// slow is a hook that makes replies late.
type slow struct{ by time.Duration }

func (s slow) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		time.Sleep(s.by)
		return err
	}
}
func (s slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
