package consumer

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// strictly is an instance that is strict about its one replica, with a task that it has claimed and may not begin.
func strictly(t *testing.T, ran *ledger) (w *world, n *node, replica *testredis.Server) {
	t.Helper()
	srv, replica := testredis.Replicated(t)
	w = newWorld(t, srv.Client())
	strict := store.Durable(srv.Client(), store.Durability{Replicas: 1, Strict: true, Timeout: 300 * time.Millisecond})
	n = w.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }), over(strict), lease(2*time.Second))
	w.leads(n)
	w.add(job("first"))
	testredis.Eventually(t, patience, func() bool { return ran.count("first") == 1 }, "it runs with a replica")
	w.gone("first")
	time.Sleep(500 * time.Millisecond) // so that the replica has that, too
	replica.Pause()
	w.add(job("x", task.MaxAttempts(1)))
	testredis.Eventually(t, patience, func() bool { return !w.due("x") }, "it is claimed")
	time.Sleep(500 * time.Millisecond) // longer than the replica is waited for
	return w, n, replica
}

// When a strict instance drains, it hands back the tasks that it has claimed and not begun. That costs no attempt.
func TestStrict_drainHandsBackWhatMayNotBegin(t *testing.T) {
	t.Parallel()
	var ran ledger
	w, n, _ := strictly(t, &ran)
	began := time.Now()
	n.stop()
	if took := time.Since(began); took > settleTimeout/2 {
		t.Errorf("it took %s to leave", took)
	}
	if ran.count("x") != 0 || !w.due("x") {
		t.Errorf("it ran %d times, and is due: %v", ran.count("x"), w.due("x"))
	}
	w.leads(w.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }), lease(2*time.Second)))
	testredis.Eventually(t, patience, func() bool { return ran.count("x") == 1 }, "it runs elsewhere")
	for _, r := range ran.all() {
		if r.ID == "x" && r.Attempt != 1 {
			t.Errorf("attempt %d", r.Attempt)
		}
	}
}

// A task that was claimed before a pause, and could begin only during the pause, waits for the end of the pause.
func TestPause_beginsNothingThatWasClaimedBefore(t *testing.T) {
	t.Parallel()
	var ran ledger
	w, _, replica := strictly(t, &ran)
	_, err := w.reg.Pause(t.Context(), time.Minute, "")
	must(t, err)
	time.Sleep(500 * time.Millisecond) // so that no call of before is under way
	replica.Resume()
	testredis.Eventually(t, patience, func() bool { return w.due("x") }, "it is handed back")
	if n := ran.count("x"); n != 0 {
		t.Errorf("it began %d times in the pause", n)
	}
	_, err = w.reg.Pause(t.Context(), 0, "")
	must(t, err)
	testredis.Eventually(t, patience, func() bool { return ran.count("x") == 1 }, "it runs after the pause")
}

// A run whose claim Redis has lost is claimed once more while it goes on: that is the same run, and is not begun again.
func TestConsumer_claimedOnceMoreWhileItRuns(t *testing.T) {
	t.Parallel()
	d := testredis.OnDisk(t, "everysec")
	w := newWorld(t, d.Client())
	let := make(chan struct{})
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error {
		ran.note(tk)
		<-let
		return nil
	}), concurrency(2), lease(30*time.Second))
	w.leads(n)
	w.add(job("x", task.In(1500*time.Millisecond)))
	time.Sleep(1200 * time.Millisecond) // x is on disk, and its claim is to be lost
	kept := d.Written()
	testredis.Eventually(t, patience, func() bool { return ran.count("x") == 1 }, "x runs")
	d.Crash(kept)
	d.Restart()
	testredis.Eventually(t, patience, func() bool { return !w.due("x") }, "it is claimed once more")
	w.add(job("y"))
	testredis.Eventually(t, patience, func() bool { return ran.count("y") == 1 }, "and so is y, behind it")
	close(let)
	w.gone("x")
	if got := ran.count("x"); got != 1 {
		t.Errorf("x ran %d times", got)
	}
	n.stop()
}

// saysInVain waits for the event that a slot was settled in vain.
func (w *world) saysInVain(slot string) {
	w.Helper()
	testredis.Eventually(w, patience, func() bool {
		events, err := w.q.Events(w.Context(), time.Time{}, 100)
		must(w, err)
		return slices.ContainsFunc(events, func(e queue.Event) bool { return len(e.Void()) == 1 && e.Void()[0] == slot })
	}, "an event names it")
}

// An instance that drains under strict durability waits for replicas before it says how its last runs ended, but only for a
// while; and not at all once it is told to hurry.
func TestStrict_drainWaitsForReplicasUnlessHurried(t *testing.T) {
	t.Parallel()
	for name, hurried := range map[string]bool{"for a while": false, "not in a hurry": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, replica := testredis.Replicated(t)
			w := newWorld(t, srv.Client())
			strict := store.Durable(srv.Client(), store.Durability{Replicas: 1, Strict: true, Timeout: 300 * time.Millisecond})
			var ran ledger
			let, hurry := make(chan struct{}), make(chan struct{})
			n := w.start(one(t, func(_ context.Context, tk *task.Task) error {
				ran.note(tk)
				<-let
				return nil
			}), over(strict), lease(30*time.Second), func(s *setup) { s.Hurry = hurry })
			w.leads(n)
			w.add(job("x"))
			testredis.Eventually(t, patience, func() bool { return ran.count("x") == 1 }, "it runs")
			replica.Pause()
			close(let)
			if hurried {
				close(hurry)
			}
			began := time.Now()
			n.stop()
			<-n.over
			if took := time.Since(began); hurried != (took < strictTimeout) || took > settleTimeout {
				t.Errorf("it took %s to leave", took)
			}
			w.gone("x")
		})
	}
}
