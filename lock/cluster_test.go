package lock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

// On a cluster locks lie on different nodes, no script asks for keys of two, and a release wakes a waiter wherever its
// client listens. When the node of a lock dies the next holder, on the replica, has a larger fence.
func TestCluster_wakesWaitersAndKeepsTheFenceRising(t *testing.T) {
	t.Parallel()
	c := testredis.Cluster(t)
	dial := func() redis.UniversalClient {
		rdb, err := onbeat.Dial(c.URL())
		must(t, err)
		t.Cleanup(func() { _ = rdb.Close() })
		return rdb
	}
	r := newRig(t, dial(), long)

	owners := map[*testredis.Server]bool{}
	for _, n := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		h, err := lock.TryAcquire(t.Context(), r.rdb, n, r.opts)
		must(t, err)
		owners[c.Owner(t, "onbeat:{"+r.opts.Namespace+"|"+n+"}:lock")] = true
		must(t, h.Release(t.Context()))
	}
	if len(owners) < 2 {
		t.Error("all locks lie on one node")
	}

	const contenders = 20
	var inside, broken atomic.Int64
	var fence int64 // guarded by nothing but the lock
	var wg sync.WaitGroup
	first := r.take()
	for range contenders {
		l, err := lock.New(dial(), r.opts)
		must(t, err)
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
			inside.Add(-1)
			if err := h.Release(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	r.inLine(contenders)
	r.release(first)
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testTimeout): // before a lease runs out
		t.Fatal("a release woke nobody")
	}
	if broken.Load() > 0 {
		t.Errorf("%d were not alone or had a smaller fence", broken.Load())
	}

	primary := c.Owner(t, r.key("lock"))
	primary.Kill()
	testredis.Eventually(t, testTimeout, func() bool { return c.Owner(t, r.key("lock")) != primary }, "nobody is promoted")
	var next *lock.Lock
	testredis.Eventually(t, testTimeout, func() bool {
		var err error
		next, err = lock.TryAcquire(t.Context(), r.rdb, name, r.opts)
		return err == nil
	}, "the lock cannot be had")
	if next.Fence() <= fence {
		t.Errorf("fence %d after %d", next.Fence(), fence)
	}
	must(t, next.Release(t.Context()))
}
