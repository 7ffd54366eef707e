package consumer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// A run that fails, or is handed back, at the moment in which it is cancelled does not run again.
func TestCancel_ofARunThatFailsAtThatMoment(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	w.start(one(t, func(ctx context.Context, tk *task.Task) error {
		ran.note(tk)
		if where, err := w.q.Cancel(context.WithoutCancel(ctx), tk.ID, "by hand", false); err != nil || where != task.Running {
			t.Errorf("cancel %s: %v, %v", tk.ID, where, err)
		}
		return errors.New("failed at that moment")
	}), concurrency(4), lease(time.Minute))
	const n = 20
	for i := range n {
		w.add(job(fmt.Sprint("x", i), task.Retry(time.Millisecond, time.Millisecond), task.Keep(time.Hour)))
	}
	testredis.Eventually(t, patience, func() bool {
		done, err := w.rdb.ZCard(t.Context(), w.q.Keys().Done).Result()
		return err == nil && done == n
	}, "all are over, and kept")
	for i := range n {
		f, err := w.q.Task(t.Context(), fmt.Sprint("x", i))
		must(t, err)
		if f.State != task.Done || f.Task.LastError() != ErrCancelled.Error() || ran.count(f.Task.ID) != 1 {
			t.Errorf("%s is %s after %d runs: %q", f.Task.ID, f.State, ran.count(f.Task.ID), f.Task.LastError())
		}
	}
}

func TestCancel_ofARunThatIsHandedBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	began := make(chan struct{})
	n := w.start(one(t, func(ctx context.Context, tk *task.Task) error {
		close(began)
		<-ctx.Done()
		if where, err := w.q.Cancel(context.WithoutCancel(ctx), tk.ID, "by hand", false); err != nil || where != task.Running {
			t.Errorf("cancel: %v, %v", where, err)
		}
		return context.Cause(ctx)
	}), drain(50*time.Millisecond), lease(time.Minute))
	w.leads(n)
	w.add(job("x", task.Keep(-1)))
	<-began
	n.stop()
	if left := w.rdb.HKeys(t.Context(), w.q.Keys().Tasks).Val(); len(left) > 0 {
		t.Errorf("%v is there to run again", left)
	}
}

// A run that had begun and is handed back waits for another run, like one that failed: its slot was not missed. A task that
// never began is as if it had not been claimed.
func TestHandBack_tellsWhatHadBegun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	began := make(chan struct{})
	n := w.start(one(t, func(ctx context.Context, _ *task.Task) error {
		close(began)
		<-ctx.Done()
		return context.Cause(ctx)
	}), drain(50*time.Millisecond), lease(time.Minute))
	w.leads(n)
	due := time.Now().Add(-time.Second).Truncate(time.Millisecond)
	w.add(job("x", task.At(due)))
	<-began
	n.stop()
	f, err := w.q.Task(t.Context(), "x")
	must(t, err)
	if want := due.Add(time.Millisecond); f.State != task.Due || !f.Task.Due.Equal(want) || f.Task.Attempts != 0 {
		t.Errorf("x is %s at %v after %d attempts; want due at %v", f.State, f.Task.Due, f.Task.Attempts, want)
	}
	c := &Consumer{}
	c.handBack(&task.Task{ID: "y", Type: "job", Due: due}, false)
	if got := c.settled[0].Due; !got.Equal(due) {
		t.Errorf("what never began is due at %v, want %v", got, due)
	}
}
