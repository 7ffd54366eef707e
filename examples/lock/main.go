// Command lock makes a report. Only one report may be under way, however many machines start it. It uses no tasks and no schedules.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/lock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	rdb, err := onbeat.Dial(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379/0"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	held, err := lock.TryAcquire(ctx, rdb, "nightly-report", lock.Options{AtLeastFor: time.Second}) // longer than clocks differ
	if errors.Is(err, lock.ErrHeld) {
		fmt.Println("another machine makes the report")
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Release(context.WithoutCancel(ctx))
	return report(held.Context(), held.Fence())
}

// report stops when the lock could be lost. The target of the report should refuse a smaller fence than it has seen.
func report(ctx context.Context, fence int64) error {
	fmt.Println("making the report with fence", fence)
	select {
	case <-time.After(500 * time.Millisecond):
		fmt.Println("made the report")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
