package consumer

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func addrOf(t *testing.T) string {
	t.Helper()
	_ = testredis.Real(t)
	u, err := url.Parse(testredis.URL(t))
	must(t, err)
	return u.Host
}

// TestPromise3_aLostReplyLosesAndDoublesNothing loses every few replies of cycles that Redis has made.
func TestPromise3_aLostReplyLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	rdb, p := through(t, addrOf(t))
	var ran ledger
	n := w.start(one(t, func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }), over(rdb), lease(5*time.Second), concurrency(20))
	w.leads(n)
	var ids []string
	for i := range 300 {
		id := fmt.Sprint("t", i)
		ids = append(ids, id)
		lost := p.lost.Load()
		if i%40 == 10 {
			p.lose.Store(1)
		}
		w.add(job(id, task.Keep(-1), task.MaxAttempts(1)))
		if i%40 == 10 {
			testredis.Eventually(t, patience, func() bool { return p.lost.Load() > lost }, "a reply is lost")
		}
	}
	w.gone(ids...)
	for _, id := range ids {
		if n := ran.count(id); n != 1 {
			t.Errorf("%s ran %d times", id, n)
		}
	}
	if dead := w.rdb.ZCard(t.Context(), w.q.Keys().Dead).Val(); dead != 0 {
		t.Errorf("%d are dead", dead)
	}
}

// TestDrain_handsBackWhatALostReplyClaimed: the attempt of a task that never began must not count.
func TestDrain_handsBackWhatALostReplyClaimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	c, err := New(w.q.Client(), w.ns, one(t, func(context.Context, *task.Task) error { t.Error("ran"); return nil }), Config{})
	must(t, err)
	m, err := instance.New(w.q.Client(), w.ns, instance.Config{})
	must(t, err)
	w.add(job("claimed", task.MaxAttempts(1)))
	ctx, stop := context.WithCancel(t.Context())
	must(t, m.Run(ctx, func(s *instance.Session) error {
		opened := make(chan struct{})
		var once sync.Once
		go s.Lead(func(ctx context.Context, term queue.Term) {
			_, _ = w.reg.Open(ctx, term)
			once.Do(func() { close(opened) })
			<-ctx.Done()
		})
		<-opened
		// The call of which the reply is lost.
		_, err := w.q.Cycle(ctx, &queue.CycleRequest{Instance: s.ID, Gen: s.Gen, Seq: 1, Want: 5,
			Lanes: []queue.LaneClaim{{Lane: queue.Lane{Queue: task.DefaultQueue, Type: "job"}}}})
		must(t, err)
		stop()
		<-s.Draining()
		c.reset(s)
		defer c.alarm.Stop()
		c.seq, c.doubt = 1, true
		c.drain()
		return nil
	}))
	if rec := w.record("claimed"); rec.Attempts != 0 || w.dead("claimed") {
		t.Errorf("attempts %d, dead: %v", rec.Attempts, w.dead("claimed"))
	}
	if !w.due("claimed") {
		t.Error("it is not due")
	}
}

func (w *world) due(id string) bool {
	return w.rdb.ZScore(w.Context(), w.q.Keys().Due(queue.Lane{Queue: task.DefaultQueue, Type: "job"}), id).Err() == nil
}

// TestPromise4_aLostLeaseVoidsTheClaim freezes an instance's connection to Redis while it runs a task.
func TestPromise4_aLostLeaseVoidsTheClaim(t *testing.T) {
	t.Parallel()
	const term = 2 * time.Second
	w := newWorld(t, testredis.Real(t))
	heldUp := testredis.Witness(t, testredis.Client(t))
	cut := make(chan struct{})
	frozen := testredis.Client(t)
	frozen.AddHook(&cutter{cut: cut})
	var cause caught
	var ran ledger
	fn := func(ctx context.Context, tk *task.Task) error {
		ran.note(tk)
		if ran.total() > 1 {
			return nil
		}
		close(cut)
		heldUp()
		var until float64 // a heartbeat that was under way may still move it
		for ctx.Err() == nil {
			until = max(until, w.rdb.ZScore(context.Background(), w.q.Keys().Instances, tk.Instance).Val())
			time.Sleep(5 * time.Millisecond)
		}
		cause.set(context.Cause(ctx))
		now, err := w.q.Now(context.Background())
		must(t, err)
		// Trust ends a tenth of the lease before the lease does. A process that gets no processor for as long cannot see to that.
		if late, by := now.UnixMilli()-int64(until), heldUp(); late > 0 && by < term/20 {
			t.Errorf("its context ended %d ms after the lease, and Redis answered within %v", late, by)
		}
		return nil // too late: settles nothing
	}
	first := w.start(one(t, fn), over(frozen), lease(term), consumeBy(instance.ConsumeAll))
	w.leads(first)
	w.add(job("shared", task.Keep(time.Minute)))
	testredis.Eventually(t, patience, func() bool { return ran.total() == 1 }, "the first runs it")
	second := w.start(one(t, fn), consumeBy(instance.ConsumeAll))
	testredis.Eventually(t, patience, func() bool { return ran.total() == 2 }, "the second runs it")
	runs := ran.all()
	if runs[1].Instance != second.id || runs[1].Fence <= runs[0].Fence || runs[1].Attempt != 2 {
		t.Errorf("then %+v after %+v", runs[1], runs[0])
	}
	if !errors.Is(cause.get(), instance.ErrLeaseLost) {
		t.Errorf("cause %v", cause.get())
	}
	testredis.Eventually(t, patience, func() bool { return w.rdb.ZScore(t.Context(), w.q.Keys().Done, "shared").Err() == nil }, "done")
	if rec := w.record("shared"); rec.Attempts != 2 {
		t.Errorf("attempts %d", rec.Attempts)
	}
}

// cutter lets no command through once cut.
type cutter struct{ cut chan struct{} }

func (c *cutter) broken() error {
	select {
	case <-c.cut:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func (c *cutter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *cutter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := c.broken(); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (c *cutter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := c.broken(); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}

func TestPromise3_redisRestartsUnderLoad(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--appendonly", "yes", "--appendfsync", "always")
	rdb := srv.Client()
	w := worldIn(t, rdb, "restarts")
	var ran ledger
	fn := handlers.Func(func(_ context.Context, tk *task.Task) error { ran.note(tk); time.Sleep(time.Millisecond); return nil })
	for range 2 {
		w.start(one(t, fn), concurrency(10), lease(20*time.Second), consumeBy(instance.ConsumeAll))
	}
	var ids []string
	var list []*task.Task
	for i := range 4000 {
		ids = append(ids, fmt.Sprint("t", i))
		list = append(list, job(ids[i], task.Keep(-1), task.MaxAttempts(1)))
	}
	w.add(list...)
	for range 2 {
		before := ran.total()
		testredis.Eventually(t, patience, func() bool { return ran.total() > before+200 }, "some run")
		srv.Kill()
		srv.Restart()
	}
	testredis.Eventually(t, 2*patience, func() bool { return rdb.HLen(t.Context(), w.q.Keys().Tasks).Val() == 0 && ran.total() >= 4000 }, "all end")
	for _, id := range ids {
		if n := ran.count(id); n != 1 {
			t.Fatalf("%s ran %d times", id, n)
		}
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	t.Run("finishes", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testredis.Real(t))
		var running, ended atomic.Bool
		release := make(chan struct{})
		n := w.start(one(t, func(context.Context, *task.Task) error {
			running.Store(true)
			<-release
			ended.Store(true)
			return nil
		}))
		w.add(job("last", task.Keep(-1)))
		testredis.Eventually(t, patience, running.Load, "runs")
		time.AfterFunc(200*time.Millisecond, func() { close(release) })
		n.stop()
		if !ended.Load() {
			t.Error("it was not waited for")
		}
		w.gone("last")
	})
	t.Run("hands back", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testredis.Real(t))
		var cause caught
		var running atomic.Bool
		n := w.start(one(t, func(ctx context.Context, _ *task.Task) error {
			running.Store(true)
			<-ctx.Done()
			cause.set(context.Cause(ctx))
			return ctx.Err()
		}), drain(50*time.Millisecond))
		w.add(job("last", task.MaxAttempts(1)))
		testredis.Eventually(t, patience, running.Load, "runs")
		n.stop()
		if !errors.Is(cause.get(), ErrDrained) {
			t.Errorf("cause %v", cause.get())
		}
		if rec := w.record("last"); rec.Attempts != 0 || len(rec.Failures) != 0 || !w.due("last") {
			t.Errorf("handed back with %d attempts, due: %v", rec.Attempts, w.due("last"))
		}
	})
	t.Run("hurries", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testredis.Real(t))
		var running atomic.Bool
		hurry := make(chan struct{})
		n := w.start(one(t, func(ctx context.Context, _ *task.Task) error {
			running.Store(true)
			<-ctx.Done()
			return ctx.Err()
		}), drain(time.Hour), func(s *setup) { s.Hurry = hurry })
		w.add(job("last", task.MaxAttempts(1)))
		testredis.Eventually(t, patience, running.Load, "runs")
		stopped := make(chan struct{})
		go func() { n.stop(); close(stopped) }()
		select {
		case <-stopped:
			t.Error("it did not wait for what runs")
		case <-time.After(200 * time.Millisecond):
		}
		close(hurry)
		select {
		case <-stopped:
		case <-time.After(patience):
			t.Fatal("it goes on though it is to hurry")
		}
		if rec := w.record("last"); rec.Attempts != 0 || !w.due("last") {
			t.Errorf("handed back with %d attempts, due: %v", rec.Attempts, w.due("last"))
		}
	})
	t.Run("gives up on who does not listen", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, testredis.Real(t))
		var running atomic.Bool
		release := make(chan struct{})
		ended := make(chan struct{})
		n := w.start(one(t, func(context.Context, *task.Task) error {
			running.Store(true)
			<-release
			close(ended)
			return nil
		}), drain(-1))
		w.add(job("deaf"))
		testredis.Eventually(t, patience, running.Load, "runs")
		start := time.Now()
		n.stop()
		if took := time.Since(start); took < abandon || took > abandon+5*time.Second {
			t.Errorf("stopped after %v", took)
		}
		if rec := w.record("deaf"); rec.Attempts != 0 || !w.due("deaf") {
			t.Errorf("handed back with %d attempts, due: %v", rec.Attempts, w.due("deaf"))
		}
		close(release)
		<-ended
	})
}

// TestPromise5_theNewestWorks: once a newer instance is ready the older claims nothing more.
func TestPromise5_theNewestWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	var ran ledger
	fn := func(_ context.Context, tk *task.Task) error { ran.note(tk); return nil }
	older := w.start(one(t, fn), release("v1"))
	w.leads(older)
	w.add(job("a", task.Keep(-1)))
	w.gone("a")
	newer := w.start(one(t, fn), release("v2"))
	w.leads(newer)
	now, err := w.q.Now(t.Context())
	must(t, err)
	for i := range 200 {
		w.add(job(fmt.Sprint("b", i), task.Keep(-1)))
	}
	testredis.Eventually(t, patience, func() bool { return ran.total() == 201 }, "all ran")
	for _, tk := range ran.all()[1:] {
		if tk.Instance != newer.id {
			t.Fatalf("%s was claimed by the older at %v; the newer led at %v", tk.ID, tk.Claimed, now)
		}
	}
	newer.stop() // and the older takes over at once
	w.add(job("c", task.Keep(-1)))
	w.gone("c")
	if last := ran.all()[201]; last.Instance != older.id || last.Release != "v1" {
		t.Errorf("c ran on %s (%s)", last.Instance, last.Release)
	}
}
