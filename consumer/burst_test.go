package consumer

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// The first tasks of a burst are not to wait until all of it is claimed, and the rest not for a hundred calls.
func TestConsume_claimsABurstInGrowingPortions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }), concurrency(2000))
	w.leads(n)
	const burst = 1500
	due := time.Now().Add(300 * time.Millisecond)
	list := make([]*task.Task, burst)
	for i := range list {
		list[i] = job("", task.At(due))
	}
	w.add(list...)
	testredis.Eventually(t, patience, func() bool { return ran.total() == burst }, "all ran")

	claims := map[time.Time]int{} // tasks of one claim have the same time
	for _, tk := range ran.all() {
		claims[tk.Claimed]++
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(claims)), time.Time.Compare)
	if n := claims[first]; n > firstPortion {
		t.Errorf("the first call claimed %d", n)
	}
	if len(claims) > 8 {
		t.Errorf("%d calls for %d tasks: %v", len(claims), burst, claims)
	}
}

// A claim that took all it was to take says nothing of workers that are still free: the next task must not wait for a
// run to end.
func TestConsume_looksOnAfterAFullPortion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	n := w.start(one(t, func(ctx context.Context, tk *task.Task) error {
		ran.note(tk)
		<-ctx.Done()
		return ctx.Err()
	}), concurrency(2*firstPortion), drain(-1))
	w.leads(n)
	due := time.Now().Add(300 * time.Millisecond)
	list := make([]*task.Task, firstPortion)
	for i := range list {
		list[i] = job("", task.At(due))
	}
	w.add(list...)
	testredis.Eventually(t, patience, func() bool { return ran.total() == firstPortion }, "all of the portion run")
	w.add(job("next"))
	testredis.Eventually(t, patience, func() bool { return ran.count("next") == 1 }, "the next runs beside them")
}
