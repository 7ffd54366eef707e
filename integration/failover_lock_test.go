package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

// hold is a time in which a client believed that it held the lock.
type hold struct{ from, to time.Time }

// contend takes a lock for a moment, again and again, until ctx ends.
func contend(ctx context.Context, rdb redis.UniversalClient, name string, had func(hold)) {
	for ctx.Err() == nil {
		held, err := lock.Acquire(ctx, rdb, name, lock.Options{TTL: 2 * time.Second})
		if err != nil {
			continue
		}
		h := hold{from: time.Now()}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-held.Context().Done():
		}
		h.to = time.Now()
		had(h)
		_ = held.Release(context.WithoutCancel(ctx))
	}
}

// together returns how many holds began while another lasted, and the longest time in which two overlapped.
func together(holds []hold) (n int, longest time.Duration) {
	slices.SortFunc(holds, func(a, b hold) int { return a.from.Compare(b.from) })
	var last time.Time
	for _, h := range holds {
		if h.from.Before(last) {
			n++
			end := last
			if h.to.Before(end) {
				end = h.to
			}
			longest = max(longest, end.Sub(h.from))
		}
		if h.to.After(last) {
			last = h.to
		}
	}
	return n, longest
}

// If Redis forgets writes in a failover, it may forget a lock: now and then two clients hold it. With a client that is strict
// about all replicas that never happens.
func TestFailover_locks(t *testing.T) {
	testredis.OnlyInASoak(t)
	t.Parallel()
	for _, c := range []struct {
		name string
		want onbeat.Durability
	}{
		{"strict durability of all replicas", onbeat.Durability{Replicas: 2, Strict: true, Timeout: 500 * time.Millisecond}},
		{"as it is", onbeat.Durability{}},
	}[:testredis.Size(1, 2)] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := testredis.Sentinels(t)
			w := worldOn(t, g.URL())
			var mu sync.Mutex
			var holds []hold
			count := func() int {
				mu.Lock()
				defer mu.Unlock()
				return len(holds)
			}
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			defer all.Wait()
			defer stop()
			for range 4 {
				rdb, err := onbeat.Dial(g.URL())
				if err != nil {
					t.Fatal(err)
				}
				defer rdb.Close()
				all.Go(func() {
					contend(ctx, onbeat.Durable(rdb, c.want), "nightly", func(h hold) {
						mu.Lock()
						defer mu.Unlock()
						holds = append(holds, h)
					})
				})
			}
			n := testredis.Size(1, 50)
			for range n {
				before := count()
				testredis.Eventually(t, 40*time.Second, func() bool { return count() > before+20 }, "the lock is taken")
				g.Failover(t)
				g.AwaitWhole(t)
			}
			before := count()
			testredis.Eventually(t, 40*time.Second, func() bool { return count() > before+20 }, "the lock is taken again")
			stop()
			all.Wait()
			two, longest := together(holds)
			if c.want.Strict && two > 0 {
				t.Errorf("%d of %d held it while another did, for %s", two, len(holds), longest)
			}
			w.Row("locks, Sentinel, planned failovers, "+c.name, nil,
				fmt.Sprintf("%d failovers; %d of %d holders were not alone, for %s at most", n, two, len(holds), longest.Round(time.Millisecond)))
		})
	}
}
