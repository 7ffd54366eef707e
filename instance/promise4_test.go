package instance

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

// When the session's context ends, its lease in Redis still runs: no other instance can have its tasks before it let go of them.
// The same if every reply is slow, by less than a heartbeat waits: trust counts from the request.
func TestPromise4_theContextEndsBeforeTheLease(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"fast replies": 0, "slow replies": time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := testredis.Real(t)
			r := newRig(t, shared)
			rdb, line := slowClient(t)
			theirs := rigOf(t, rdb, r.p.Namespace)
			n := theirs.node(Config{ID: "a", Lease: 5 * time.Second})
			s := n.session()
			a := member{"a", s.Gen}
			testredis.Eventually(t, testTimeout, func() bool { id, _, _ := r.lead(); return id == "a" }, "a leads")
			r.open(a)
			r.enqueue("x")
			held := r.wantClaims(a, 1)[0]

			line.delay(late)
			before := line.count()
			testredis.Eventually(t, testTimeout, func() bool { return line.count() > before+4 }, "heartbeats")
			heldUp := testredis.Witness(t, shared)
			line.hold(t)
			wantCause(t, cause(t, s.Context()), ErrLeaseLost)
			left := r.left(a)
			t.Logf("%v of the lease are left", left)
			if left <= 0 && left+heldUp() <= 0 {
				t.Fatalf("the lease had run out %v before the context ended", -left)
			}

			// From then on the claim is void, for every finder, and for every call that the old holder still sends.
			testredis.Eventually(t, testTimeout, func() bool { return r.left(a) < 0 }, "the lease runs out")
			_, err := r.claim(a, queue.Settlement{ID: "x", Fence: held.Fence})
			r.wantErr(err, queue.ErrFenced)
			b := r.up("b", "")
			r.open(b)
			gens := r.beat(b).Orphans
			if !slices.Contains(gens, a.gen) { // a busy machine may have lost a later lease too
				t.Fatalf("orphans %v, want %d", gens, a.gen)
			}
			heir, err := New(r.q.Client(), r.p.Namespace, Config{ID: "b"})
			must(t, err)
			_, err = heir.recover(t.Context(), a.gen)
			must(t, err)
			_, err = r.claim(a, queue.Settlement{ID: "x", Fence: held.Fence})
			r.wantErr(err, queue.ErrFenced)
			if got := r.wantClaims(b, 1)[0]; got.Fence <= held.Fence || got.Attempt != 2 {
				t.Fatalf("claimed again with fence %d in run %d; it was %d in run 1", got.Fence, got.Attempt, held.Fence)
			}
			line.release()
		})
	}
}

// slowClient is a client of the shared Redis with a line that a test can hold up.
func slowClient(t *testing.T) (*redis.Client, *line) {
	t.Helper()
	rdb := testredis.Client(t)
	return rdb, tap(t, rdb)
}

// left is what is left of a lease, by the clock of Redis.
func (r *rig) left(m member) time.Duration {
	r.Helper()
	pipe := r.rdb.TxPipeline()
	now := pipe.Time(context.Background())
	score := pipe.ZScore(context.Background(), r.q.Keys().Instances, m.id)
	_, err := pipe.Exec(context.Background())
	must(r, err)
	return time.UnixMilli(int64(score.Val())).Sub(now.Val())
}

// The same by the exact clock of a bubble: a lease that was renewed by a request with a slow reply is trusted no longer
// than one with a fast reply.
func TestPromise4_slowRenewalsDoNotExtendTrust(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, r *rig, mini *testredis.Miniredis) {
		other, line := r.other(mini)
		n := other.node(Config{ID: "a"})
		s := n.session()
		time.Sleep(time.Minute)
		line.delay(900 * time.Millisecond)
		time.Sleep(time.Minute)
		if s.Context().Err() != nil {
			t.Fatal("slow renewals were not enough:", context.Cause(s.Context()))
		}
		line.hold(t)
		wantCause(t, cause(t, s.Context()), ErrLeaseLost)
		if got, want := time.Since(line.lastAsked()), n.m.Lease()-n.m.cfg.margin(); got != want {
			t.Fatalf("trusted for %v after the last request, want %v", got, want)
		}
		if left := r.left(member{id: "a"}); left > n.m.cfg.margin() || left < n.m.cfg.margin()-time.Millisecond {
			t.Fatalf("%v of the lease are left, want %v", left, n.m.cfg.margin())
		}
		line.release()
	})
}
