package testredis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Namespace returns a name that no other test uses: lowercase letters, digits and '-'. When the test ends, every key of the
// shared Redis that contains the name is deleted. The servers of [Mini] and [Private] are removed as a whole.
func Namespace(t testing.TB) string {
	t.Helper()
	ns := "test-" + strings.ToLower(rand.Text()[:16])
	t.Cleanup(func() {
		if err := forget(ns); err != nil {
			t.Errorf("testredis: delete the keys of namespace %s: %v", ns, err)
		}
	})
	return ns
}

// forget deletes a namespace from the shared server, if there is one.
func forget(ns string) error {
	srv := shared.used()
	if srv == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	opts, err := redis.ParseURL(srv.url)
	if err != nil {
		return err
	}
	rdb := newClient(opts)
	defer rdb.Close()
	var keys []string
	scan := rdb.Scan(ctx, 0, "*"+ns+"*", 1000).Iterator()
	for scan.Next(ctx) {
		keys = append(keys, scan.Val())
	}
	if err := scan.Err(); err != nil {
		return err
	}
	for _, key := range keys {
		if err := rdb.Del(ctx, key).Err(); err != nil {
			return err
		}
	}
	return nil
}

// Soak reports whether all is to be tried in full, as make soak does (ONBEAT_SOAK=1).
func Soak() bool { return os.Getenv("ONBEAT_SOAK") == "1" }

// OnlyInASoak skips a test that takes long to find little, and of which other tests show the most.
func OnlyInASoak(t testing.TB) {
	t.Helper()
	if !Soak() {
		t.Skip("runs in a soak (ONBEAT_SOAK=1)")
	}
}

// Size returns how much of something a test has: few, or all in a soak.
func Size[T any](few, all T) T {
	if Soak() {
		return all
	}
	return few
}

var errNotYet = errors.New("not yet")

// Eventually waits until cond returns true or a nil error. If it does not within the timeout, Eventually fails the test
// with the message and the last error. It calls cond often, so choose a generous timeout: a slow machine needs it, and a
// fast one does not wait for it.
//
// Call it from the test's own goroutine.
func Eventually[C func() bool | func() error](t testing.TB, timeout time.Duration, cond C, format string, args ...any) {
	t.Helper()
	check := func() error {
		switch c := any(cond).(type) {
		case func() error:
			return c()
		case func() bool:
			if !c() {
				return errNotYet
			}
		}
		return nil
	}
	deadline := time.Now().Add(timeout)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		left := time.Until(deadline)
		if left <= 0 {
			what := fmt.Sprintf(format, args...)
			if errors.Is(err, errNotYet) {
				t.Fatalf("%s: not within %v", what, timeout)
			}
			t.Fatalf("%s: not within %v: %v", what, timeout, err)
		}
		time.Sleep(min(wait, left))
	}
}

// Witness starts a witness of how well this machine serves the test, and returns a function that says for how long at worst the
// witness got no answer from Redis since that function was called last. The witness is a goroutine that asks Redis every 5 ms. On a
// busy machine a process may get no processor for longer than a promise allows it to take: where the witness got none either, a test
// that judges time would judge the machine.
func Witness(t testing.TB, rdb *redis.Client) (heldUp func() time.Duration) {
	t.Helper()
	dial := func() *redis.Client {
		opts := *rdb.Options()
		opts.MaxRetries, opts.DialerRetries = -1, 1
		return newClient(&opts)
	}
	own := dial()
	ctx, stop := context.WithCancel(context.Background())
	var mu sync.Mutex
	var worst time.Duration
	last := time.Now()
	note := func(answered bool) {
		mu.Lock()
		defer mu.Unlock()
		worst = max(worst, time.Since(last))
		if answered {
			last = time.Now()
		}
	}
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			err := own.Ping(ctx).Err()
			note(err == nil)
			if err != nil { // a client that could not dial pauses for a second
				_ = own.Close()
				own = dial()
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	t.Cleanup(func() {
		stop()
		group.Wait()
		_ = own.Close()
	})
	return func() time.Duration {
		note(false)
		mu.Lock()
		defer mu.Unlock()
		was := worst
		worst = 0
		return was
	}
}
