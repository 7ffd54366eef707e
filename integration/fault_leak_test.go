package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/testredis"
)

// Dispatchers are started and stopped at random moments, again and again. No goroutine and no connection is left, and only
// keys that a bound or a policy keeps. The test is not parallel, because it looks at all goroutines.
func TestFault_startAndStopLeaveNothing(t *testing.T) {
	srv := testredis.Private(t)
	watch := srv.Client()
	ctx := context.Background()
	connections := func() int { return strings.Count(watch.ClientList(ctx).Val(), "\n") }
	testredis.Eventually(t, 5*time.Second, func() error { return watch.Ping(ctx).Err() }, "no Redis")
	before, conns, goroutines := goleak.IgnoreCurrent(), connections(), runtime.NumGoroutine()
	ns := testredis.Namespace(t)
	n, ran := rig.Size(40, 1000), 0
	for i := range n {
		rdb, err := onbeat.Dial(srv.URL())
		if err != nil {
			t.Fatal(err)
		}
		d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns, Release: fmt.Sprint(i), Drain: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		began := make(chan struct{}, 1000)
		if err := d.Handle("job", handlers.Func(func(context.Context, *task.Task) error {
			began <- struct{}{}
			return nil
		})); err != nil {
			t.Fatal(err)
		}
		if err := d.Schedule("beat", schedule.Every(50*time.Millisecond), "job", nil); err != nil {
			t.Fatal(err)
		}
		run, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- d.Run(run) }()
		switch i % 4 {
		case 0: // until it works
			select {
			case <-began:
				ran++
			case <-time.After(20 * time.Second):
				t.Fatalf("round %d runs nothing", i)
			}
		case 1:
			time.Sleep(rand.N(5 * time.Millisecond)) // while it registers
		case 2:
			time.Sleep(rand.N(100 * time.Millisecond)) // while it begins to work
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("round %d: %v", i, err)
		}
		if err := rdb.Close(); err != nil {
			t.Errorf("round %d: close: %v", i, err)
		}
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	testredis.Eventually(t, 10*time.Second, func() bool { return connections() <= conns }, "connections are left: %d at first", conns)
	left := watch.Keys(ctx, "*").Val()
	if len(left) > 25 {
		t.Errorf("%d keys are left after %d rounds: %v", len(left), n, left)
	}
	members := watch.ZCard(ctx, "onbeat:{"+ns+"}:instances").Val()
	if members != 0 {
		t.Errorf("%d instances are still registered", members)
	}
	if ran < n/4 {
		t.Errorf("only %d of %d rounds ran a task", ran, n)
	}
	(&rig.World{T: t}).Row("dispatchers started and stopped", rig.Figures{}, fmt.Sprintf("%d rounds, %d of them ran a task; goroutines %d before, %d after; %d connections and %d keys left",
		n, ran, goroutines, runtime.NumGoroutine(), connections(), len(left)))
}
