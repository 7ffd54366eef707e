package consumer

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// Redis dies and comes back as it was when a run had begun. The run has ended since, which Redis does not know: it is settled
// again, and not repeated.
func TestConsumer_settlesAgainWhatRedisForgotThatItEnded(t *testing.T) {
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
	w.gone("x") // while y keeps the only worker
	close(let["y"])
	w.gone("y")
	if got := ran.count("x"); got != 1 { // the claim of y is lost, so y may run again
		t.Errorf("x ran %d times", got)
	}
}

// The same with the settlement forgotten here, as one of very many. Redis holds a task, and nobody knows that its run has ended:
// it is handed back while all workers are busy, and run again.
func TestConsumer_runsAgainWhatNobodyKnowsToHaveEnded(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	w := newWorld(t, srv.Client())
	let := make(chan struct{})
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error {
		ran.note(tk)
		if tk.ID == "y" {
			<-let
		}
		return nil
	}), concurrency(1), lease(30*time.Second))
	w.leads(n)
	w.add(job("y"))
	testredis.Eventually(t, patience, func() bool { return ran.count("y") == 1 }, "y runs")
	held := w.runningOf("y")
	must(t, w.rdb.HSet(t.Context(), w.q.Keys().Tasks, "x", task.Encode(nil, &task.Task{ID: "x", Type: "job"})).Err())
	must(t, w.rdb.HSet(t.Context(), held, "x", "1 1 1").Err())
	w.reconnect()
	testredis.Eventually(t, patience, func() bool { return w.due("x") }, "x is handed back: nobody is free")
	close(let)
	testredis.Eventually(t, patience, func() bool { return ran.count("x") == 1 }, "x runs")
	w.gone("x", "y")
}

// A run is claimed once more by a call whose reply is lost: it is settled under the later claim, or that would stay for as long
// as the instance lives.
func TestConsumer_settlesUnderTheLaterClaim(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	w := newWorld(t, srv.Client())
	let := make(chan struct{})
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error {
		ran.note(tk)
		<-let
		return nil
	}), lease(30*time.Second))
	w.leads(n)
	w.add(job("x"))
	testredis.Eventually(t, patience, func() bool { return ran.count("x") == 1 }, "x runs")
	key := w.runningOf("x")
	fence, rest, _ := strings.Cut(w.rdb.HGet(t.Context(), key, "x").Val(), " ")
	must(t, w.rdb.HSet(t.Context(), w.q.Keys().Tasks, "z", task.Encode(nil, &task.Task{ID: "z", Type: "job"})).Err())
	must(t, w.rdb.HSet(t.Context(), key, "x", fence+"9 "+rest, "z", "1 1 1").Err())
	w.reconnect()
	testredis.Eventually(t, patience, func() bool { return ran.count("z") == 1 }, "what is held has been read")
	close(let)
	w.gone("x", "z")
	testredis.Eventually(t, patience, func() bool { return !w.rdb.HExists(t.Context(), key, "x").Val() }, "x is no longer held")
	if got := ran.count("x"); got != 1 {
		t.Errorf("x ran %d times", got)
	}
}

// runningOf is the key of the claims of the generation that has claimed a task.
func (w *world) runningOf(id string) string {
	w.Helper()
	base := strings.TrimSuffix(w.q.Keys().Running(1), "1")
	for _, key := range w.rdb.Keys(w.Context(), base+"*").Val() {
		if w.rdb.HExists(w.Context(), key, id).Val() {
			return key
		}
	}
	w.Fatalf("nobody runs %s", id)
	return ""
}

// reconnect ends all connections to a Redis of the test's own. A client that had one cannot know whether its last writes are there.
func (w *world) reconnect() {
	w.Helper()
	must(w, w.rdb.Do(w.Context(), "client", "kill", "type", "pubsub").Err())
	must(w, w.rdb.Do(w.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err())
}

// A run ends while Redis is away, which comes back without its claim: an event names it, though the first call after an outage
// makes sure of what is held.
func TestConsumer_settledInVainAfterAnOutageIsSaid(t *testing.T) {
	t.Parallel()
	d := testredis.OnDisk(t, "everysec")
	w := newWorld(t, d.Client())
	const slot = "beat@1700000000000"
	let := make(chan struct{})
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error {
		ran.note(tk)
		<-let
		return nil
	}), lease(30*time.Second))
	w.leads(n)
	w.add(job(slot, task.In(1500*time.Millisecond)))
	time.Sleep(1200 * time.Millisecond) // it is on disk, and its claim is to be lost
	kept := d.Written()
	testredis.Eventually(t, patience, func() bool { return ran.count(slot) == 1 }, "it runs")
	d.Crash(kept)
	close(let)
	time.Sleep(500 * time.Millisecond) // the outage, in which it cannot be settled
	d.Restart()
	w.saysInVain(slot)
}
