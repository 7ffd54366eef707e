package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/onbeat/onbeat/task"
	"github.com/onbeat/onbeat/testredis"
)

// Redis dies and comes back as it was when a run had begun. The run has ended since, and Redis does not know: it is run
// again, and is not held for as long as the instance lives. If all workers are busy, it waits for one.
func TestConsumer_runsAgainWhatRedisForgotThatItEnded(t *testing.T) {
	t.Parallel()
	d := testredis.OnDisk(t, "everysec")
	w := newWorld(t, d.Client())
	var ran ledger
	let := map[string]chan struct{}{"x": make(chan struct{}), "y": make(chan struct{})}
	n := w.start(one(t, func(ctx context.Context, t *task.Task) error {
		ran.note(t)
		select {
		case <-let[t.ID]:
		case <-ctx.Done():
		}
		return nil
	}), concurrency(1), lease(30*time.Second)) // more than a restart takes on a busy machine
	w.leads(n)
	w.add(job("x"))
	testredis.Eventually(t, patience, func() bool { return ran.count("x") == 1 }, "x runs")
	w.add(job("y"))
	kept := d.Written()
	close(let["x"])
	testredis.Eventually(t, patience, func() bool { return ran.count("y") == 1 }, "y runs")
	d.Crash(kept)
	d.Restart()
	testredis.Eventually(t, patience, func() bool { return w.due("x") }, "x is handed back: nobody is free")
	close(let["y"])
	testredis.Eventually(t, patience, func() bool { return ran.count("x") == 2 && ran.count("y") == 2 }, "both run again")
	w.gone("x", "y")
}
