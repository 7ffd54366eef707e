package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/lock"
	"github.com/onbeat/onbeat/testredis"
)

// heldFor is the lease of a lock that is taken through package lock.
const heldFor = 800 * time.Millisecond

// The holders of a lock: contenders take it, wait for it, and work while its context lives. They are cut off from Redis, or
// frozen together with it, for longer than the lease.
func TestLocks_areLinearizable(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.hold("locks", size(1, 20), locksRun, locksSpec.model())
}

func locksRun(s *stage) *history {
	s.Helper()
	h := newHistory()
	watch := newWatchman(s.T)
	opts := lock.Options{Namespace: testredis.Namespace(s), TTL: heldFor, Wait: heldFor}
	var all [2 * crowd]*holder
	for i := range all {
		gate := &gate{}
		rdb := s.client(func(o *redis.Options) { o.Dialer, o.PoolSize = gate.dial, 5 })
		locker, err := lock.New(rdb, opts)
		if err != nil {
			s.Fatal(err)
		}
		all[i] = &holder{h: h, who: i, locker: locker, gate: gate, watch: watch}
	}
	s.run(2500*time.Millisecond, false, len(all), func(ctx context.Context, i int, r *rand.Rand) { all[i].live(ctx, r) })
	return h
}

// holder takes locks, and works under them.
type holder struct {
	h      *history
	who    int
	locker *lock.Locker
	gate   *gate
	watch  *watchman
}

func (c *holder) live(ctx context.Context, r *rand.Rand) {
	for pause(ctx, rand.N(20*time.Millisecond)) {
		name := fmt.Sprint("l", r.IntN(2))
		held := c.acquire(name, r.IntN(2) == 0)
		if held == nil {
			continue
		}
		d := rand.N(80 * time.Millisecond)
		if r.IntN(5) == 0 { // its requests do not reach Redis
			c.gate.shut()
			d = heldFor/2 + rand.N(heldFor)
		}
		for until := time.Now().Add(d); time.Now().Before(until) && pause(ctx, 2*time.Millisecond); {
			c.work(held)
		}
		c.gate.open()
		c.release(held)
	}
}

// acquire takes a lock, or waits for it, for a while.
func (c *holder) acquire(name string, wait bool) (held *lock.Lock) {
	take := c.locker.TryAcquire
	if wait {
		take = c.locker.Acquire
	}
	a := c.h.ask(c.who, func() (err error) {
		held, err = take(context.Background(), name)
		if errors.Is(err, lock.ErrHeld) {
			return nil
		}
		return err
	})
	said := lockSaid{lost: a.fate == lost}
	if held != nil {
		said.ok, said.fence = true, held.Fence()
	}
	a.wrote(lockAsk{op: "acquire", lock: name}, said)
	return held
}

// work records a moment at which the context of the lock lives. It records nothing if this process stood still around that
// moment, because its timers stood still too.
func (c *holder) work(held *lock.Lock) {
	lives := false
	a := c.h.ask(c.who, func() error { lives = held.Context().Err() == nil; return nil })
	if lives && !c.watch.stood() {
		a.wrote(lockAsk{op: "work", lock: held.Name(), fence: held.Fence()}, lockSaid{ok: true})
	}
}

func (c *holder) release(held *lock.Lock) {
	ok := false
	a := c.h.ask(c.who, func() error {
		err := held.Release(context.Background())
		ok = err == nil
		if errors.Is(err, lock.ErrLost) {
			return nil
		}
		return err
	})
	a.wrote(lockAsk{op: "release", lock: held.Name(), fence: held.Fence()}, lockSaid{lost: a.fate == lost, ok: ok})
}
