package lock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

func long(o *lock.Options) { o.TTL = time.Minute }

// counted counts the scripts that a client calls.
type counted struct{ n *atomic.Int64 }

func (c counted) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c counted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			c.n.Add(1)
		}
		return next(ctx, cmd)
	}
}
func (c counted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAcquire_aReleaseWakesOneWhoWaits(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb, long)
		h, l := r.take(), r.locker()
		waits := make(chan result, 3)
		for i := range 3 {
			go func() {
				h, err := l.Acquire(t.Context(), name)
				waits <- result{h, err}
			}()
			r.inLine(int64(i + 1))
		}
		for left := range 3 {
			r.release(h)
			h = r.get(waits) // long before the lease would have run out
			r.inLine(int64(2 - left))
			if len(waits) > 0 {
				t.Fatal("two hold it")
			}
		}
	})
}

// A waiter in a process that died is still in line; the wake-up goes to the one behind it.
func TestAcquire_aDeadWaiterSwallowsNoWakeUp(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb, long)
		h := r.take()
		waits := r.waiting(t.Context(), r.locker())
		r.inLine(1)
		for _, dead := range []string{"gone 1", "gone 2", "gone 3"} {
			r.do("ZADD", r.key("wait"), time.Now().Add(time.Second).UnixMilli(), dead)
		}
		r.release(h)
		r.get(waits)
	})
}

// A waiter that gave up while Redis did not answer is still in line, and its process still listens. The wake-up goes to
// another waiter of that process.
func TestAcquire_oneWhoLeftUnheardSwallowsNoWakeUp(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb, long)
		h := r.take()
		waits := r.waiting(t.Context(), r.locker())
		r.inLine(1)
		members, err := rdb.ZRange(t.Context(), r.key("wait"), 0, 0).Result()
		must(t, err)
		line, _, _ := strings.Cut(members[0], " ")
		r.do("ZADD", r.key("wait"), time.Now().Add(time.Second).UnixMilli(), line+" 999")
		r.release(h)
		r.get(waits)
	})
}

// A waiter that was woken and gives up passes the wake-up on.
func TestAcquire_whoLeavesHandsTheWakeUpOn(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		r := newRig(t, rdb, long)
		r.take()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		first := r.waiting(ctx, r.locker())
		r.inLine(1)
		second := r.waiting(t.Context(), r.locker())
		r.inLine(2)
		// The holder released, and woke the first, which did not hear it yet.
		r.do("ZPOPMIN", r.key("wait"))
		r.do("DEL", r.key("lock"))
		cancel()
		wantErr(t, (<-first).err, context.Canceled)
		r.get(second)
	})
}

func TestAcquire_noticesALeaseThatRanOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client)
		r.do("SET", r.key("lock"), "somebody-who-died", "PX", r.opts.TTL.Milliseconds())
		at := time.Now()
		h := r.get(r.waiting(t.Context(), r.locker()))
		if took := time.Since(at); took > r.opts.TTL+100*time.Millisecond {
			t.Errorf("noticed after %v, with a TTL of %v", took, r.opts.TTL)
		}
		r.release(h)
	})
}

// If the holder dies, a crowd does not look at once.
func TestAcquire_aCrowdLooksOneAfterTheOther(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		const crowd = 50
		r := newRig(t, rdb, long)
		r.take()
		l := r.locker()
		ctx, cancel := context.WithCancel(t.Context())
		var waits []<-chan result
		for range crowd {
			waits = append(waits, r.waiting(ctx, l))
		}
		r.inLine(crowd)
		line, err := rdb.ZRangeWithScores(t.Context(), r.key("wait"), 0, -1).Result()
		must(t, err)
		for i := range crowd - 1 {
			if apart := line[i+1].Score - line[i].Score; apart < 5 {
				t.Errorf("%v and %v look %v ms apart", line[i].Member, line[i+1].Member, apart)
			}
		}
		cancel()
		for _, c := range waits {
			wantErr(t, (<-c).err, context.Canceled)
		}
	})
}

// Waiting costs Redis next to nothing: no polling beside one look a lease.
func TestAcquire_doesNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client)
		h := r.take()
		var calls atomic.Int64
		other := mini.Dialed(t)
		other.AddHook(counted{&calls})
		l, err := lock.New(other, r.opts)
		must(t, err)
		waits := r.waiting(t.Context(), l)
		time.Sleep(50 * r.opts.TTL)
		if n := calls.Load(); n > 100 {
			t.Errorf("one who waits called %d scripts in 50 leases", n)
		}
		r.release(h)
		r.release(r.get(waits))
	})
}

func TestAcquire_waitsNoLongerThanAllowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client, func(o *lock.Options) { o.Wait = 5 * time.Second })
		h := r.take()
		at := time.Now()
		_, err := lock.Acquire(t.Context(), mini.Client, name, r.opts)
		wantErr(t, err, lock.ErrHeld)
		if took := time.Since(at).Round(time.Second); took != 5*time.Second {
			t.Errorf("waited for %v", took)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		_, err = lock.Acquire(ctx, mini.Client, name, r.opts)
		wantErr(t, err, why)
		r.release(h)
	})
}

// Wait bounds the waiting, and not what comes after.
func TestAcquire_theWaitIsNotTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client, func(o *lock.Options) { o.Wait = 5 * time.Second })
		h := r.take()
		waits := r.waiting(t.Context(), r.locker())
		time.Sleep(time.Second)
		r.release(h)
		next := r.get(waits)
		time.Sleep(time.Minute)
		r.lives(next)
		r.release(next)
	})
}

func TestAcquire_bearsAnOutageWhileItWaits(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := newRig(t, srv.Client(), func(o *lock.Options) { o.TTL = 10 * time.Second }) // on a busy machine a shorter one runs out before
	h := r.take()
	waits := r.waiting(t.Context(), r.locker())
	r.inLine(1)
	srv.Restart() // and forgets everything
	next := r.get(waits)
	if next.Fence() <= h.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), h.Fence())
	}
	r.ends(h, lock.ErrLost)
}

// A reply that was lost does not lock out the one it was for.
func TestAcquire_takesWhatItTookUnheard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client, long)
		h := r.take()
		other := mini.Dialed(t)
		deaf := &deaf{}
		other.AddHook(deaf)
		l, err := lock.New(other, r.opts)
		must(t, err)
		waits := r.waiting(t.Context(), l)
		synctest.Wait()
		deaf.on.Store(true)
		r.release(h) // wakes it: it takes the lock, and does not hear so
		synctest.Wait()
		deaf.on.Store(false)
		at := time.Now()
		next := r.get(waits)
		if took := time.Since(at); took > r.opts.TTL/2 {
			t.Errorf("after %v", took)
		}
		r.release(next)
	})
}

// A caller that gives up while its request is on the way leaves nothing behind: the call that undoes it arrives later.
func TestAcquire_aRequestThatWasGivenUpTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		r := newRig(t, mini.Client, func(o *lock.Options) { o.AtLeastFor = time.Hour })
		other := mini.Dialed(t)
		warm, err := lock.TryAcquire(t.Context(), other, "another", r.opts) // Redis knows the script from now on
		must(t, err)
		must(t, warm.Release(t.Context()))
		other.AddHook(&underway{by: 50 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Millisecond, cancel)
		h, err := lock.TryAcquire(ctx, other, name, r.opts)
		if h != nil {
			t.Error("it was taken")
		}
		wantErr(t, err, context.Canceled)
		time.Sleep(r.opts.TTL)
		if mini.Exists(r.key("lock")) {
			t.Errorf("nobody has the lock, for %v", mini.TTL(r.key("lock")))
		}
	})
}

// underway is a hook that delays the first script. The caller cannot take the script back meanwhile.
type underway struct {
	by    time.Duration
	first atomic.Bool
}

func (*underway) DialHook(next redis.DialHook) redis.DialHook { return next }
func (u *underway) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && u.first.CompareAndSwap(false, true) {
			time.Sleep(u.by)
			ctx = context.WithoutCancel(ctx)
		}
		return next(ctx, cmd)
	}
}
func (*underway) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// deaf is a hook that loses replies.
type deaf struct{ on atomic.Bool }

func (d *deaf) DialHook(next redis.DialHook) redis.DialHook { return next }
func (d *deaf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if d.on.Load() {
			cmd.SetErr(context.DeadlineExceeded)
			return context.DeadlineExceeded
		}
		return err
	}
}
func (d *deaf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A thousand want it at once. One has it at a time, each gets it, and a release wakes one of them, not all.
func TestAcquire_aThousandContenders(t *testing.T) {
	t.Parallel()
	const contenders, processes = 1000, 10
	r := newRig(t, testredis.Real(t), long)
	var calls atomic.Int64
	var wg sync.WaitGroup
	var inside, fence, held int64 // guarded by nothing but the lock
	var broken atomic.Int64
	first := r.take()
	for range processes {
		rdb := testredis.Client(t)
		rdb.AddHook(counted{&calls})
		l, err := lock.New(rdb, r.opts)
		must(t, err)
		for range contenders / processes {
			wg.Go(func() {
				h, err := l.Acquire(t.Context(), name)
				if err != nil {
					t.Error(err)
					return
				}
				if atomic.AddInt64(&inside, 1) != 1 || h.Fence() <= fence {
					broken.Add(1)
				}
				fence, held = h.Fence(), held+1
				atomic.AddInt64(&inside, -1)
				if err := h.Release(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	r.inLine(contenders)
	before, at := calls.Load(), time.Now()
	r.release(first)
	wg.Wait()
	if broken.Load() > 0 || held != contenders {
		t.Errorf("%d held it, %d not alone or with a smaller fence", held, broken.Load())
	}
	used := calls.Load() - before
	t.Logf("%d contenders: %d calls to get in line, %d and %v to go through", contenders, before, used, time.Since(at).Round(time.Millisecond))
	if used > 3*contenders { // a look when it is woken and a release, each; and room for a slow machine
		t.Errorf("%d calls for %d contenders", used, contenders)
	}
}
