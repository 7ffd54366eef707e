package lock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/lock"
)

// inProcess is a Redis for an example.
func inProcess() (rdb *redis.Client, done func()) {
	srv, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	rdb = redis.NewClient(&redis.Options{Addr: srv.Addr()})
	return rdb, func() {
		_ = rdb.Close()
		srv.Close()
	}
}

// A locker has a client of Redis and a namespace. Locks of another namespace are other locks.
func Example() {
	rdb, done := inProcess()
	defer done()
	ctx := context.Background()

	locker, err := lock.New(rdb, lock.Options{Namespace: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	held, err := locker.TryAcquire(ctx, "nightly-report")
	if err != nil {
		fmt.Println(err) // another holder has it, or Redis does not answer
		return
	}
	fmt.Println(held.Name(), held.Context().Err())
	fmt.Println(held.Release(ctx))
	// Output:
	// nightly-report <nil>
	// <nil>
}

func ExampleAcquire() {
	rdb, done := inProcess()
	defer done()
	ctx := context.Background()

	held, err := lock.Acquire(ctx, rdb, "nightly-report", lock.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	work := held.Context() // ends before another process can have the lock
	fmt.Println("held:", held.Name(), held.Fence() > 0, work.Err())
	fmt.Println("released:", held.Release(ctx), context.Cause(work))
	// Output:
	// held: nightly-report true <nil>
	// released: <nil> lock is released
}

func ExampleTryAcquire() {
	rdb, done := inProcess()
	defer done()
	ctx := context.Background()

	held, _ := lock.TryAcquire(ctx, rdb, "nightly-report", lock.Options{})
	defer held.Release(ctx)
	switch _, err := lock.TryAcquire(ctx, rdb, "nightly-report", lock.Options{}); {
	case errors.Is(err, lock.ErrHeld):
		fmt.Println("somebody else does it")
	case errors.Is(err, lock.ErrUnreachable):
		fmt.Println("nobody knows")
	}
	// Output:
	// somebody else does it
}

// A job that takes a millisecond, started by the crontabs of two machines whose clocks differ by less than a minute.
func ExampleOptions_atLeastFor() {
	rdb, done := inProcess()
	defer done()
	ctx := context.Background()
	opts := lock.Options{AtLeastFor: time.Minute}

	for range 2 {
		held, err := lock.TryAcquire(ctx, rdb, "rotate-keys", opts)
		if errors.Is(err, lock.ErrHeld) {
			fmt.Println("done already")
			continue
		}
		fmt.Println("rotated")
		_ = held.Release(ctx)
	}
	// Output:
	// rotated
	// done already
}

func ExampleQuorum() {
	var nodes []redis.UniversalClient
	for range 3 {
		rdb, done := inProcess()
		defer done()
		nodes = append(nodes, rdb)
	}
	ctx := context.Background()
	locker, err := lock.Quorum(nodes, lock.Options{TTL: 10 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = nodes[0].Close() // a minority may be gone
	held, err := locker.Acquire(ctx, "nightly-report")
	fmt.Println(held.Name(), err)
	fmt.Println(held.Release(ctx))
	// Output:
	// nightly-report <nil>
	// <nil>
}
