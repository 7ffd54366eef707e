package lock_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
)

func TestMain(m *testing.M) {
	if os.Getenv(asHolder) != "" {
		os.Exit(hold())
	}
	testredis.Main(m)
}

// testTimeout is what a slow machine gets.
const testTimeout = 30 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

// rig is one lock, on one Redis.
type rig struct {
	*testing.T
	rdb  redis.UniversalClient
	opts lock.Options
}

func newRig(t *testing.T, rdb redis.UniversalClient, change ...func(*lock.Options)) *rig {
	t.Helper()
	r := &rig{T: t, rdb: rdb, opts: lock.Options{Namespace: testredis.Namespace(t), TTL: 4 * time.Second}}
	for _, f := range change {
		f(&r.opts)
	}
	return r
}

const name = "job"

// longTTL is for tests that measure by the clock on the wall: the context ends a tenth of it before the lease, and a busy
// machine is late by less.
const longTTL = 12 * time.Second

func (r *rig) key(kind string) string {
	return "onbeat:{" + r.opts.Namespace + "|" + name + "}:" + kind
}

func (r *rig) locker() *lock.Locker {
	r.Helper()
	l, err := lock.New(r.rdb, r.opts)
	must(r, err)
	return l
}

// take takes the lock, and releases it when the test ends if it has not been.
func (r *rig) take() *lock.Lock {
	r.Helper()
	h, err := lock.Acquire(context.Background(), r.rdb, name, r.opts)
	must(r, err)
	r.Cleanup(func() { _ = h.Release(context.Background()) })
	return h
}

func (r *rig) release(h *lock.Lock) {
	r.Helper()
	must(r, h.Release(context.Background()))
}

func (r *rig) wantHeld() *lock.HeldError {
	r.Helper()
	h, err := lock.TryAcquire(context.Background(), r.rdb, name, r.opts)
	if err == nil {
		r.release(h)
	}
	var held *lock.HeldError
	if !errors.As(err, &held) || !errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrUnreachable) {
		r.Fatalf("error %v, want a *HeldError", err)
	}
	return held
}

func (r *rig) do(args ...any) any {
	r.Helper()
	v, err := r.rdb.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		r.Fatalf("%v: %v", args, err)
	}
	return v
}

// waiting takes the lock on a goroutine. The result comes out of the channel.
func (r *rig) waiting(ctx context.Context, l *lock.Locker) <-chan result {
	out := make(chan result, 1)
	go func() {
		h, err := l.Acquire(ctx, name)
		out <- result{h, err}
	}()
	return out
}

type result struct {
	*lock.Lock
	err error
}

// inLine waits until n are in line.
func (r *rig) inLine(n int64) {
	r.Helper()
	testredis.Eventually(r, testTimeout, func() bool { return r.do("ZCARD", r.key("wait")) == n }, "%d in line", n)
}

func (r *rig) get(c <-chan result) *lock.Lock {
	r.Helper()
	select {
	case got := <-c:
		must(r, got.err)
		r.Cleanup(func() { _ = got.Release(context.Background()) })
		return got.Lock
	case <-time.After(testTimeout):
		r.Fatal("still waits for the lock")
		return nil
	}
}

// ends waits until the lock's context has ended, and checks why.
func (r *rig) ends(h *lock.Lock, cause error) {
	r.Helper()
	select {
	case <-h.Context().Done():
		wantErr(r, context.Cause(h.Context()), cause)
	case <-time.After(testTimeout):
		r.Fatal("the context of the lock still lives")
	}
}

func (r *rig) lives(h *lock.Lock) {
	r.Helper()
	if err := h.Context().Err(); err != nil {
		r.Fatalf("the context of the lock has ended: %v", context.Cause(h.Context()))
	}
}
