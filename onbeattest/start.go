package onbeattest

import (
	"cmp"
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/precise"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A sleep in the kernel, by which an instance claims on time, would hold up the clock of a bubble.
func init() { precise.Use(time.Sleep) }

// Redis starts a Redis in memory for this test alone, and returns a client of it. Both end with the test. Within a bubble of
// [testing/synctest], call it inside: its clock is then that of the bubble.
func Redis(t testing.TB) *redis.Client {
	t.Helper()
	return testredis.Mini(t).Client
}

// New returns a dispatcher on a [Redis] of its own. Where the config leaves them out, the namespace is "test", the lease an hour, because an
// instance that need not prove every second that it lives costs a test less, and nothing is logged.
func New(t testing.TB, cfg onbeat.Config) *onbeat.Dispatcher {
	t.Helper()
	cfg.Namespace = cmp.Or(cfg.Namespace, "test")
	cfg.Lease = cmp.Or(cfg.Lease, time.Hour)
	if cfg.Slog == nil && reflect.ValueOf(cfg.Log).IsZero() {
		cfg.Log = onbeat.Quiet
	}
	d, err := onbeat.New(Redis(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// patience is how long Start waits for a dispatcher. On a Redis in memory it takes milliseconds.
const patience = 30 * time.Second

// Start runs a dispatcher until the test ends, and returns when it is ready. The test fails if Run refuses to start, if the dispatcher is
// not ready within 30 seconds, or if Run returns an error.
func Start(t testing.TB, d *onbeat.Dispatcher) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the dispatcher: %v", err)
		}
	})
	for until := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		why := d.Unready()
		switch {
		case why == nil:
			return
		case len(ended) > 0: // its error is told by the cleanup
			t.FailNow()
		case time.Now().After(until):
			t.Fatalf("the dispatcher is not ready: %v", why)
		}
	}
}
