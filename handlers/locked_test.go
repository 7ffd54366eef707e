package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/lock"
	"github.com/onbeat/onbeat/task"
)

func lockerOf(t testing.TB, mini *testredis.Miniredis) *lock.Locker {
	t.Helper()
	l, err := lock.New(mini.Client, lock.Options{Namespace: "shop", TTL: 4 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLocked_runsUnderTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockerOf(t, testredis.Mini(t))
		why := errors.New("as the handler says")
		h := handlers.Locked(l, handlers.LockName("report"))(handlers.Func(func(ctx context.Context, _ *task.Task) error {
			if held := lock.FromContext(ctx); held == nil || held.Fence() == 0 || held.Name() != "report" {
				t.Errorf("in the context is %v", held)
			}
			time.Sleep(time.Minute) // of the bubble
			if _, err := l.TryAcquire(ctx, "report"); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("while it runs: %v", err)
			}
			return why
		}))
		for range 2 { // it is released afterwards
			if err := h.Handle(t.Context(), &task.Task{}); err != why {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestLocked_isReleasedAfterAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockerOf(t, testredis.Mini(t))
		h := handlers.Recover()(handlers.Locked(l, handlers.LockName("report"))(handlers.Func(func(context.Context, *task.Task) error {
			panic("oh")
		})))
		for range 2 {
			var p *handlers.PanicError
			if err := h.Handle(t.Context(), &task.Task{}); !errors.As(err, &p) {
				t.Errorf("error %v", err)
			}
		}
	})
}

func TestLocked_doesNotRunWhileAnotherHasTheLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lockerOf(t, testredis.Mini(t))
		h := handlers.Locked(l, func(tk *task.Task) string { return tk.Type })(handlers.Func(func(context.Context, *task.Task) error {
			t.Error("it ran")
			return nil
		}))
		held, err := l.Acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		err = h.Handle(t.Context(), &task.Task{Type: "a"})
		if after, ok := handlers.RetryDelay(err); !ok || after < time.Second || after > 4*time.Second || !errors.Is(err, lock.ErrHeld) || handlers.IsDead(err) {
			t.Errorf("%v after %v", err, after)
		}
		if err := h.Handle(t.Context(), &task.Task{Type: "no{name}"}); !handlers.IsDead(err) {
			t.Errorf("a name that is none: %v", err)
		}
		_ = held.Release(t.Context())
	})
}

func TestLocked_tellsTheHandlerThatTheLockIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mini := testredis.Mini(t)
		h := handlers.Locked(lockerOf(t, mini), handlers.LockName("report"))(handlers.Func(func(ctx context.Context, _ *task.Task) error {
			mini.Del("onbeat:{shop|report}:lock")
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		if err := h.Handle(t.Context(), &task.Task{}); !errors.Is(err, lock.ErrLost) {
			t.Errorf("error %v", err)
		}
	})
}

func TestLocked_failsWhenRedisDoesNotAnswer(t *testing.T) {
	t.Parallel()
	mini := testredis.Mini(t)
	l := lockerOf(t, mini)
	_ = mini.Client.Close()
	h := handlers.Locked(l, handlers.LockName("report"))(handlers.Sleep())
	err := h.Handle(t.Context(), &task.Task{})
	if _, ok := handlers.RetryDelay(err); ok || !errors.Is(err, lock.ErrUnreachable) || handlers.IsDead(err) {
		t.Errorf("error %v", err)
	}
}

func ExampleLocked() {
	srv, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()

	locker, err := lock.New(rdb, lock.Options{Namespace: "shop"})
	if err != nil {
		panic(err)
	}
	guard := handlers.Locked(locker, func(t *task.Task) string { return "customer:" + t.Key })
	h := guard(handlers.Func(func(ctx context.Context, t *task.Task) error {
		held := lock.FromContext(ctx)
		fmt.Println(held.Name(), held.Fence() > 0) // the resource refuses a fence smaller than the largest it saw
		return nil
	}))
	fmt.Println(h.Handle(context.Background(), &task.Task{Key: "42"}))
	// Output:
	// customer:42 true
	// <nil>
}
