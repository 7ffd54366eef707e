package lock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

// Lock is a lock that is held until it is released or lost. Its methods may be called from any goroutine.
type Lock struct {
	a     *attempt
	fence int64
	until []int64 // by node: the lock may not end before this time (ms), by the node's clock; 0: it may end at any time
	taken time.Time

	ctx    context.Context // the holder's
	cancel context.CancelCauseFunc
	life   context.Context // lives while the lock is held, even if the holder's context ends
	finish context.CancelCauseFunc
	kept   chan struct{} // closed when the heartbeat has stopped

	trust  *time.Timer
	atMost *time.Timer

	releasing sync.Once
	released  error
}

type lockKey struct{}

// FromContext returns the lock that ctx was made under, or nil. If locks are nested, it returns the innermost.
func FromContext(ctx context.Context) *Lock {
	h, _ := ctx.Value(lockKey{}).(*Lock)
	return h
}

func newLock(ctx context.Context, a *attempt, asked time.Time, fence int64) *Lock {
	h := &Lock{a: a, fence: fence, taken: asked, until: make([]int64, len(a.nodes)), kept: make(chan struct{})}
	for i, g := range a.last.grants {
		if g.taken {
			h.until[i] = a.until(g.now)
		}
	}
	h.ctx, h.cancel = context.WithCancelCause(context.WithValue(ctx, lockKey{}, h))
	h.life, h.finish = context.WithCancelCause(context.Background())
	h.trust = h.endAt(asked.Add(a.opts.trusted()), ErrLost)
	if d := a.opts.AtMostFor; d > 0 {
		h.atMost = h.endAt(asked.Add(d), ErrAtMost)
	}
	go h.keep()
	return h
}

// Name returns the name of the lock.
func (h *Lock) Name() string { return h.a.name }

// Fence returns the fencing token: it is larger for each later holder of the name. It rises even after Redis lost its data,
// unless the clock of Redis went back at the same time. It is about the time in µs. A resource that the holder writes to
// keeps the largest fence it has seen, and refuses smaller ones.
func (h *Lock) Fence() int64 { return h.fence }

// Context lives while the lock is held, at most as long as the context it was acquired with. It ends before the lease can
// have run out, and [context.Cause] says why: [ErrLost], [ErrAtMost], [ErrReleased], or the cause of the parent context. In
// the last case the lock is still held until it is released.
func (h *Lock) Context() context.Context { return h.ctx }

func (h *Lock) endAt(at time.Time, cause error) *time.Timer {
	return time.AfterFunc(time.Until(at), func() { h.end(cause) })
}

// end ends the context of the lock. The first cause stands.
func (h *Lock) end(cause error) {
	h.finish(cause)
	h.cancel(context.Cause(h.life))
}

// Release gives the lock back, ends its context, and wakes a waiter. It returns [ErrLost] if another holder may have had
// the lock meanwhile; it leaves that holder's lock alone. If Redis does not answer, it retries until the lease is over or
// ctx ends. Then it returns [ErrUnreachable], and Redis frees the lock within a TTL. It tries once even if ctx has ended
// before. Later calls return the result of the first.
func (h *Lock) Release(ctx context.Context) error {
	h.releasing.Do(func() {
		h.end(ErrReleased)
		<-h.kept // so that no heartbeat comes after the release
		h.trust.Stop()
		if h.atMost != nil {
			h.atMost.Stop()
		}
		err := h.giveBack(ctx)
		if h.lost() {
			err = ErrLost
		}
		if err != nil {
			h.released = fmt.Errorf("release lock %q: %w", h.a.name, err)
		}
	})
	return h.released
}

func (h *Lock) lost() bool { return errors.Is(context.Cause(h.life), ErrLost) }

// returns is the outcome of a release, node by node.
type returns struct {
	given []bool // the lock was ours, and is free now
	maybe []bool // a reply was lost: if the lock is gone now, an earlier try may have released it
	errs  []error
}

func (h *Lock) giveBack(ctx context.Context) error {
	r := &returns{make([]bool, len(h.a.nodes)), make([]bool, len(h.a.nodes)), make([]error, len(h.a.nodes))}
	for over := time.Now().Add(h.a.opts.TTL); ; {
		h.a.each(func(i int, n node) {
			if !r.given[i] {
				h.giveBackTo(context.WithoutCancel(ctx), i, n, r)
			}
		})
		heard := len(h.a.nodes) - countOf(r.errs, func(err error) bool { return err != nil })
		given := countOf(r.given, yes)
		switch {
		case given >= h.a.majority():
			return nil
		case heard-given > len(h.a.nodes)-h.a.majority(): // not even if all the others still had it
			return ErrLost
		}
		err := h.a.unheard(heard, r.errs)
		if !store.Retryable(err) || h.lost() || time.Now().After(over) {
			return err
		}
		select {
		case <-time.After(h.a.opts.heartbeat() / 4):
		case <-ctx.Done():
			return err
		}
	}
}

func (h *Lock) giveBackTo(ctx context.Context, i int, n node, r *returns) {
	ours, err := n.release(ctx, h.a.keys, h.a.token, h.until[i], false)
	r.errs[i] = err
	r.given[i] = err == nil && (ours || r.maybe[i])
	r.maybe[i] = r.maybe[i] || err != nil && !store.NotSent(err)
}

func yes(b bool) bool { return b }

func countOf[T any](list []T, is func(T) bool) (n int) {
	for _, v := range list {
		if is(v) {
			n++
		}
	}
	return n
}
