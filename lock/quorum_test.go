package lock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
	"github.com/onbeat/onbeat/task"
)

// nodes are servers that know nothing of each other.
type nodes struct {
	*testing.T
	servers []*testredis.Server
	opts    lock.Options
}

func newNodes(t *testing.T, n int) *nodes {
	t.Helper()
	// A node has a twentieth of the TTL to answer.
	q := &nodes{T: t, opts: lock.Options{Namespace: testredis.Namespace(t), TTL: 4 * time.Second}}
	for range n {
		q.servers = append(q.servers, testredis.Private(t))
	}
	return q
}

// quorum is one process's view of them.
func (q *nodes) quorum() *lock.Locker {
	q.Helper()
	var clients []redis.UniversalClient
	for _, s := range q.servers {
		rdb := s.Client(func(o *redis.Options) { o.MaxRetries = -1 })
		must(q, rdb.Ping(q.Context()).Err())
		clients = append(clients, rdb)
	}
	l, err := lock.Quorum(clients, q.opts)
	must(q, err)
	return l
}

func (q *nodes) take(l *lock.Locker) *lock.Lock {
	q.Helper()
	h, err := l.Acquire(context.Background(), name)
	must(q, err)
	q.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

func (q *nodes) wantHeld(l *lock.Locker) {
	q.Helper()
	h, err := l.TryAcquire(q.Context(), name)
	if err == nil {
		_ = h.Release(context.Background())
	}
	wantErr(q, err, lock.ErrHeld)
}

// on sends a command to one node.
func (q *nodes) on(i int, args ...any) any {
	q.Helper()
	v, _ := q.servers[i].Client().Do(context.Background(), args...).Result()
	return v
}

func (q *nodes) key(kind string) string { return (&rig{opts: q.opts}).key(kind) }

// jump lets the clock of a node jump past the end of the lease: the key is gone.
func (q *nodes) jump(i int) {
	q.Helper()
	if q.on(i, "PEXPIRE", q.key("lock"), 0) != int64(1) {
		q.Fatalf("node %d does not have the lock", i)
	}
}

func TestQuorum_hasOneHolderAndARisingFence(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	a, b := q.quorum(), q.quorum()
	h := q.take(a)
	q.wantHeld(b)
	must(t, h.Release(context.Background()))
	next := q.take(b)
	if next.Fence() <= h.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), h.Fence())
	}
	q.wantHeld(a)
	(&rig{T: t}).ends(h, lock.ErrReleased)
}

// The clock of one node is an hour ahead, and so are its fences. The next majority is without it.
func TestQuorum_fenceRisesThoughTheNodesClocksDiffer(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	l := q.quorum()
	q.on(0, "SET", q.key("fence"), time.Now().Add(time.Hour).UnixMicro())
	h := q.take(l)
	must(t, h.Release(context.Background()))
	q.servers[0].Kill()
	if next := q.take(l); next.Fence() <= h.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), h.Fence())
	}
}

func TestQuorum_bearsTheLossOfAMinority(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 5)
	l := q.quorum()
	h := q.take(l)
	q.servers[0].Kill()
	q.servers[1].Pause() // this one hangs
	defer q.servers[1].Resume()
	lives(t, h, 2*q.opts.TTL)
	q.wantHeld(q.others(2, 3, 4))
	must(t, h.Release(context.Background()))
	h = q.take(l)
	lives(t, h, q.opts.TTL)
	must(t, h.Release(context.Background()))
}

// others is a view of some of the nodes, of which the rest does not count: five nodes, but only these answer.
func (q *nodes) others(up ...int) *lock.Locker {
	q.Helper()
	var clients []redis.UniversalClient
	for _, i := range up {
		clients = append(clients, q.servers[i].Client())
	}
	l, err := lock.Quorum(clients, q.opts)
	must(q, err)
	return l
}

// lives checks that a lock is not lost for some time: nothing must happen.
func lives(t *testing.T, h *lock.Lock, d time.Duration) {
	t.Helper()
	select {
	case <-h.Context().Done():
		t.Fatalf("the lock ended: %v", context.Cause(h.Context()))
	case <-time.After(d):
	}
}

func TestQuorum_endsInTimeWhenAMajorityIsLost(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	q.opts.TTL = longTTL
	l := q.quorum()
	h := q.take(l)
	q.servers[0].Kill()
	q.servers[1].Pause()
	at := time.Now() // every renewal was asked for before
	(&rig{T: t}).ends(h, lock.ErrLost)
	if took := time.Since(at); took > q.opts.TTL {
		t.Errorf("the context lived for %v after the last renewal, the lease for %v", took, q.opts.TTL)
	}
	_, err := l.TryAcquire(t.Context(), name)
	wantErr(t, err, lock.ErrUnreachable)
	q.servers[1].Resume()
	q.take(l)
}

// A clock that jumps on a minority lets no second holder in, and the next heartbeat repairs the node.
func TestQuorum_bearsAClockThatJumps(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	a, b := q.quorum(), q.quorum()
	h := q.take(a)
	for i := range q.servers { // one after the other
		q.jump(i)
		q.wantHeld(b)
		testredis.Eventually(t, testTimeout, func() bool { return q.on(i, "EXISTS", q.key("lock")) == int64(1) },
			"node %d has the lock again", i)
		testredis.Eventually(t, testTimeout, func() bool { return h.Context().Err() == nil && q.sameToken() }, "all have one token")
	}
	must(t, h.Release(context.Background()))
}

// A node that was away when the lock was taken gets it with a heartbeat, and counts from then on.
func TestQuorum_aNodeThatWasAwayGetsTheLockToo(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	a, b := q.quorum(), q.quorum()
	q.servers[2].Kill()
	h := q.take(a)
	q.servers[2].Restart()
	testredis.Eventually(t, testTimeout, q.sameToken, "node 2 has the lock")
	q.jump(0)
	q.wantHeldOrUnheard(b) // 1 and 2 keep everybody out
	if err := h.Context().Err(); err != nil {
		t.Fatal(context.Cause(h.Context()))
	}
	must(t, h.Release(context.Background()))
}

func (q *nodes) sameToken() bool {
	first := q.on(0, "GET", q.key("lock"))
	for i := range q.servers {
		if q.on(i, "GET", q.key("lock")) != first {
			return false
		}
	}
	return true
}

// A node that restarts has forgotten everything. One at a time does no harm.
func TestQuorum_bearsARollingRestart(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	a, b := q.quorum(), q.quorum()
	h := q.take(a)
	for i, s := range q.servers {
		s.Restart()
		q.wantHeldOrUnheard(b)
		testredis.Eventually(t, testTimeout, q.sameToken, "node %d has the lock again", i)
	}
	if err := h.Context().Err(); err != nil {
		t.Fatal(context.Cause(h.Context()))
	}
	must(t, h.Release(context.Background()))
}

// wantHeldOrUnheard is wantHeld just after a restart, when a connection may turn out to be broken.
func (q *nodes) wantHeldOrUnheard(l *lock.Locker) {
	q.Helper()
	if h, err := l.TryAcquire(q.Context(), name); err == nil {
		_ = h.Release(context.Background())
		q.Fatal("two hold it")
	}
}

// The limit of the promise: clocks that jump on a majority let a second holder in. The first holder learns that with its next
// heartbeat, and its fence is smaller.
func TestQuorum_clocksThatJumpOnAMajority(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	a, b := q.quorum(), q.quorum()
	h := q.take(a)
	q.jump(0)
	q.jump(1)
	next := q.take(b)
	at := time.Now()
	if next.Fence() <= h.Fence() {
		t.Errorf("fence %d after %d", next.Fence(), h.Fence())
	}
	(&rig{T: t}).ends(h, lock.ErrLost)
	if took := time.Since(at); took > q.opts.TTL*3/4 {
		t.Errorf("noticed after %v, want with the next heartbeat", took)
	}
	wantErr(t, h.Release(context.Background()), lock.ErrLost)
	lives(t, next, q.opts.TTL)
}

// Nodes that lost the lock may have had another holder since. To get them back is not to have kept them.
func TestQuorum_isLostWithTheMajorityEvenIfNobodyElseTookIt(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	h := q.take(q.quorum())
	q.jump(0)
	q.jump(1)
	(&rig{T: t}).ends(h, lock.ErrLost)
	wantErr(t, h.Release(context.Background()), lock.ErrLost)
	q.take(q.quorum()) // at once: the release took back what the heartbeat had taken
}

// A waiter is told that most of the nodes refuse it, although one would give it the lock.
func TestQuorum_saysThatItIsRefusedWhileItWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var clients []redis.UniversalClient
		var minis []*testredis.Miniredis
		for range 3 {
			mini := testredis.Mini(t)
			r.rdb = mini.Client
			r.do("SET", r.key("lock"), "somebody", "PX", r.opts.TTL.Milliseconds())
			minis, clients = append(minis, mini), append(clients, mini.Client)
		}
		l, err := lock.Quorum(clients, r.opts)
		must(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*r.opts.TTL)
		defer cancel()
		waits := r.waiting(ctx, l)
		time.Sleep(r.opts.TTL / 2) // of the bubble
		minis[1].SetError("NOPERM this user may not")
		minis[2].SetError("NOPERM this user may not")
		wantErr(t, (<-waits).err, task.ErrDenied)
		time.Sleep(time.Second) // a subscription that broke ends with its next try
	})
}

func TestQuorum_oneOfManyContendersAtATime(t *testing.T) {
	t.Parallel()
	q := newNodes(t, 3)
	q.opts.TTL = 10 * time.Second
	var inside, held, broken atomic.Int64
	var fence int64 // guarded by nothing but the lock
	var wg sync.WaitGroup
	first := q.take(q.quorum())
	var lockers []*lock.Locker
	for range 20 {
		lockers = append(lockers, q.quorum())
	}
	for _, l := range lockers {
		wg.Go(func() {
			h, err := l.Acquire(t.Context(), name)
			if err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) != 1 || h.Fence() <= fence {
				broken.Add(1)
			}
			fence = h.Fence()
			held.Add(1)
			inside.Add(-1)
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range q.servers {
		testredis.Eventually(t, testTimeout, func() bool { return q.on(i, "ZCARD", q.key("wait")) == int64(20) }, "all wait on node %d", i)
	}
	at := time.Now()
	must(t, first.Release(context.Background()))
	wg.Wait()
	if broken.Load() > 0 || held.Load() != 20 {
		t.Errorf("%d held it, %d not alone or with a smaller fence", held.Load(), broken.Load())
	}
	t.Logf("20 contenders took %v", time.Since(at).Round(time.Millisecond))
}
