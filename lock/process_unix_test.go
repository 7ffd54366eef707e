//go:build unix

package lock_test

import (
	"context"
	"strings"
	"syscall"
	"testing"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

// A process that was frozen past its lease finds that it lost the lock, and does not touch the next holder's. Its
// writes of the first moment would have carried a smaller fence.
func TestAcquire_whenTheHolderIsFrozenPastItsLease(t *testing.T) {
	t.Parallel()
	r := newRig(t, testredis.Real(t), func(o *lock.Options) { o.TTL = longTTL })
	frozen := r.holder()
	must(t, frozen.Process.Signal(syscall.SIGSTOP))
	h := r.get(r.waiting(context.Background(), r.locker()))
	if h.Fence() <= frozen.fence {
		t.Errorf("fence %d after %d", h.Fence(), frozen.fence)
	}
	must(t, frozen.Process.Signal(syscall.SIGCONT))
	if said := frozen.line(t); said != "ended lock is lost" {
		t.Errorf("it said %q", said)
	}
	if said := frozen.line(t); !strings.Contains(said, "lock is lost") {
		t.Errorf("it said %q", said)
	}
	r.lives(h)
	r.wantHeld()
	r.release(h)
}
