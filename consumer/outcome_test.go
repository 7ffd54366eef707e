package consumer

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestRun_retriesWithTheDelayGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	w.start(one(t, func(_ context.Context, tk *task.Task) error {
		ran.note(tk)
		switch {
		case tk.ID == "asked" && tk.Attempt == 1:
			return handlers.RetryAfter(errors.New("come back"), 400*time.Millisecond)
		case tk.ID == "own" && tk.Attempt < 3:
			return errors.New("not yet")
		}
		return nil
	}))
	w.add(job("asked", task.Keep(-1), task.Retry(time.Hour, time.Hour)), job("own", task.Keep(-1), task.Retry(2*time.Millisecond, 5*time.Millisecond)))
	w.gone("asked", "own")
	if n := ran.count("asked"); n != 2 {
		t.Errorf("asked ran %d times", n)
	}
	if n := ran.count("own"); n != 3 {
		t.Errorf("own ran %d times", n)
	}
	var first time.Time
	for _, tk := range ran.all() {
		if tk.ID != "asked" {
			continue
		}
		if tk.Attempt == 1 {
			first = tk.Claimed
		} else if d := tk.Claimed.Sub(first); d < 399*time.Millisecond {
			t.Errorf("tried again after %v", d)
		} else if tk.LastError() != "come back" {
			t.Errorf("last error %q", tk.LastError())
		}
	}
}

func TestRun_dead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	w.start(one(t, func(_ context.Context, tk *task.Task) error {
		ran.note(tk)
		switch tk.ID {
		case "dead":
			return handlers.Dead(errors.New("no use"))
		case "panic":
			panic("at the disco")
		case "exit":
			runtime.Goexit()
		}
		return errors.New("again")
	}))
	fast := task.Retry(time.Millisecond, time.Millisecond)
	w.add(job("dead"), job("panic", task.MaxAttempts(1)), job("exit", task.MaxAttempts(1)), job("tired", task.MaxAttempts(3), fast))
	for id, want := range map[string]struct {
		runs int
		text string
	}{"dead": {1, "no use"}, "panic": {1, "TestRun_dead"}, "exit": {1, "Goexit"}, "tired": {3, "again"}} {
		testredis.Eventually(t, patience, func() bool { return w.dead(id) }, "%s dies", id)
		if n := ran.count(id); n != want.runs {
			t.Errorf("%s ran %d times, want %d", id, n, want.runs)
		}
		rec := w.record(id)
		if !strings.Contains(rec.LastError(), want.text) || rec.Attempts != want.runs || len(rec.Failures) != want.runs {
			t.Errorf("%s: %d attempts, last error %q", id, rec.Attempts, rec.LastError())
		}
	}
	if text := w.record("panic").LastError(); !strings.HasPrefix(text, "panic: at the disco\n") {
		t.Errorf("panic recorded as %q", text)
	}
}

func TestRun_timeout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var cause caught
	w.start(one(t, func(ctx context.Context, _ *task.Task) error {
		<-ctx.Done()
		cause.set(context.Cause(ctx))
		return ctx.Err()
	}))
	w.add(job("slow", task.Timeout(50*time.Millisecond), task.MaxAttempts(1)))
	testredis.Eventually(t, patience, func() bool { return w.dead("slow") }, "dies of it")
	if !errors.Is(cause.get(), ErrTimeout) {
		t.Errorf("cause %v", cause.get())
	}
	if text := w.record("slow").LastError(); !strings.Contains(text, "timed out after 50ms") {
		t.Errorf("last error %q", text)
	}
}

func TestRun_cancelReachesTheHandler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var cause caught
	var running atomic.Int32
	w.start(one(t, func(ctx context.Context, _ *task.Task) error {
		running.Add(1)
		<-ctx.Done()
		cause.set(context.Cause(ctx))
		return ctx.Err()
	}))
	w.add(job("victim", task.Keep(time.Minute)))
	testredis.Eventually(t, patience, func() bool { return running.Load() == 1 }, "runs")
	where, err := w.q.Cancel(t.Context(), "victim", "by hand", false)
	must(t, err)
	if where != task.Running {
		t.Fatalf("was %s", where)
	}
	testredis.Eventually(t, patience, func() bool {
		return w.rdb.ZScore(t.Context(), w.q.Keys().Done, "victim").Err() == nil
	}, "ends as done")
	if !errors.Is(cause.get(), ErrCancelled) {
		t.Errorf("cause %v", cause.get())
	}
	found, err := w.q.Task(t.Context(), "victim")
	must(t, err)
	if got := found.Task.LastError(); got != ErrCancelled.Error() || found.Task.Attempts != 1 {
		t.Errorf("what is kept says %q after %d attempts, want that it was cancelled, after 1", got, found.Task.Attempts)
	}
	if running.Load() != 1 {
		t.Error("ran again")
	}
}

func TestRun_manyCancelsHoldUpNoLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var running, ended atomic.Int32
	n := w.start(one(t, func(ctx context.Context, _ *task.Task) error {
		running.Add(1)
		defer ended.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}), concurrency(200), lease(time.Second))
	var list []*task.Task
	for i := range 150 {
		list = append(list, job("v"+string(rune(0x4e00+i)), task.Keep(-1)))
	}
	w.add(list...)
	testredis.Eventually(t, patience, func() bool { return running.Load() == 150 }, "all run")
	gen := n.session.Gen
	for _, tk := range list {
		_, err := w.q.Cancel(t.Context(), tk.ID, "by hand", false)
		must(t, err)
	}
	testredis.Eventually(t, patience, func() bool { return ended.Load() == 150 }, "all end")
	w.gone(list[149].ID)
	if n.session.Gen != gen {
		t.Error("the lease was lost over it")
	}
}

func TestRun_keepsWhatIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	w.start(one(t, func(context.Context, *task.Task) error { return nil }))
	small, big := job("small", task.Keep(time.Minute)), job("big", task.Keep(time.Minute))
	small.Payload, big.Payload = []byte(`"x"`), make([]byte, keptPayload+1)
	w.add(small, big, job("brief", task.Keep(-1)))
	w.gone("brief")
	for _, id := range []string{"small", "big"} {
		testredis.Eventually(t, patience, func() bool {
			return w.rdb.ZScore(t.Context(), w.q.Keys().Done, id).Err() == nil
		}, "%s is kept", id)
	}
	if rec := w.record("small"); string(rec.Payload) != `"x"` || rec.Attempts != 1 {
		t.Errorf("small: %+v", rec)
	}
	if rec := w.record("big"); len(rec.Payload) != 0 {
		t.Errorf("big keeps %d bytes", len(rec.Payload))
	}
	refused, _, err := w.q.Enqueue(t.Context(), []*task.Task{job("small")}, true)
	must(t, err)
	if !errors.Is(refused[0], task.ErrDuplicate) {
		t.Errorf("the same ID again: %v", refused[0])
	}
}

func TestRun_recordsItCannotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	w.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }))
	far := time.Now().Add(time.Hour)
	w.add(job("damaged", task.At(far)), job("newer", task.At(far)))
	k := w.q.Keys()
	lane := k.Due(queue.Lane{Queue: task.DefaultQueue, Type: "job"})
	pipe := w.rdb.TxPipeline()
	pipe.HSet(t.Context(), k.Tasks, "damaged", "?what", "newer", "3.from the future")
	for _, id := range []string{"damaged", "newer"} {
		pipe.ZIncrBy(t.Context(), lane, -2*float64(time.Hour.Milliseconds()), id)
	}
	_, err := pipe.Exec(t.Context())
	must(t, err)
	w.add(job("good", task.Keep(-1)))
	w.gone("good")
	testredis.Eventually(t, patience, func() bool { return w.dead("damaged") }, "the damaged one is dead")
	testredis.Eventually(t, patience, func() bool {
		at := w.rdb.ZScore(t.Context(), lane, "newer").Val()
		return at > float64(time.Now().UnixMilli())
	}, "the newer one waits")
	if rec := w.rdb.HGet(t.Context(), k.Tasks, "newer").Val(); rec != "3.from the future" {
		t.Errorf("its record became %q", rec)
	}
	if ran.total() != 1 {
		t.Errorf("%d ran", ran.total())
	}
}
