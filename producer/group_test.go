package producer

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

func TestGroup_aCallByItselfIsNotDelayed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := worldIn(t, testredis.Mini(t).Client, "alone")
		g := newGate()
		close(g.pass)
		w.rdb.AddHook(g)
		start := time.Now()
		for n := range 3 {
			if _, err := w.p.Enqueue(t.Context(), task.New("job", nil)); err != nil {
				t.Fatal(err)
			}
			if calls := int(g.calls.Load()); calls != n+1 {
				t.Errorf("%d calls for %d tasks", calls, n+1)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("took %v", took)
		}
	})
}

func TestGroup_sharesRoundTrips(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		c := newCrowd(t, rdb)
		for range 16 - abreast {
			c.joins(t.Context(), task.New("job", nil))
		}
		ids := map[string]bool{}
		for _, o := range c.all() {
			if o.err != nil || ids[o.id] || !c.there(o.id) {
				t.Errorf("%+v", o)
			}
			ids[o.id] = true
		}
		if n := c.gate.calls.Load(); n != abreast+1 {
			t.Errorf("%d calls for 16 tasks", n)
		}
		if _, err := c.p.Enqueue(t.Context(), task.New("job", nil)); err != nil || c.gate.calls.Load() != abreast+2 {
			t.Errorf("one by itself, later: %v, %d calls", err, c.gate.calls.Load())
		}
	})
}

func TestGroup_refusesEachItsOwn(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		c := newCrowd(t, rdb)
		for _, opt := range []task.Option{
			task.ID("a"), task.ID("a"), task.ID("first"), func(*task.Task) {},
			task.Unique("u", time.Hour), task.Unique("u", time.Hour), task.ID("b"), func(*task.Task) {},
		} {
			c.joins(t.Context(), task.New("job", nil, opt))
		}
		if _, err := c.p.Enqueue(t.Context(), task.New("a b", nil)); !errors.Is(err, task.ErrInvalid) {
			t.Errorf("a bad one: %v", err)
		}
		got := c.all()[abreast:]
		if c.gate.calls.Load() != abreast+1 {
			t.Fatalf("%d calls", c.gate.calls.Load())
		}
		for i, want := range []struct {
			id      string
			refused bool
		}{{"a", false}, {"a", true}, {"first", true}, {got[3].id, false}, {got[4].id, false}, {got[4].id, true}, {"b", false}, {got[7].id, false}} {
			if got[i].id != want.id || errors.Is(got[i].err, task.ErrDuplicate) != want.refused || !want.refused && got[i].err != nil {
				t.Errorf("%d: %+v, want %+v", i, got[i], want)
			}
		}
	})
}

func TestGroup_whoLeavesWhileItWaitsHasAddedNothing(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		c := newCrowd(t, rdb)
		ctx, cancel := context.WithCancel(t.Context())
		left := c.joins(ctx, task.New("job", nil, task.ID("left")))
		c.joins(t.Context(), task.New("job", nil, task.ID("stays")))
		cancel()
		o := soon(t, left)
		wantNotAdded(t, o.err, context.Canceled)
		_, err := c.p.Enqueue(ctx, task.New("job", nil, task.ID("late")))
		wantNotAdded(t, err, context.Canceled)
		left <- o
		for i, o := range c.all() {
			if i != abreast && o.err != nil {
				t.Errorf("%+v", o)
			}
		}
		ctx, cancel = context.WithDeadline(t.Context(), time.Now())
		defer cancel()
		_, err = c.p.Enqueue(ctx, task.New("job", nil, task.ID("late"))) // though it would have left at once
		wantNotAdded(t, err, context.DeadlineExceeded)
		if c.there("left") || c.there("late") || !c.there("stays") {
			t.Errorf("left %v, late %v, stays %v", c.there("left"), c.there("late"), c.there("stays"))
		}
	})
}

// The first of a batch leaves while it is on the way: the others stay.
func TestGroup_whoLeavesOnTheWayMayHaveAdded(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		t.Parallel()
		c := newCrowd(t, rdb)
		ctx, cancel := context.WithCancel(t.Context())
		left := c.joins(ctx, task.New("job", nil, task.ID("left")))
		c.joins(t.Context(), task.New("job", nil, task.ID("stays")))
		c.departs()
		cancel()
		o := soon(t, left)
		if !errors.Is(o.err, context.Canceled) || !errors.Is(o.err, task.ErrUnreachable) {
			t.Errorf("%v", o.err)
		}
		left <- o
		if o := c.all()[abreast+1]; o.err != nil {
			t.Errorf("who stays: %v", o.err)
		}
		if !c.there("left") || !c.there("stays") {
			t.Errorf("left %v, stays %v", c.there("left"), c.there("stays"))
		}
	})
}

func TestGroup_whatFailsACallFailsAllThatShareIt(t *testing.T) {
	t.Parallel()
	lost := &net.OpError{Op: "read", Err: errors.New("connection reset")}
	for name, tt := range map[string]struct {
		err   error
		times int32
		want  error
		calls int32 // 0: more, because each tries again
	}{
		"full":           {busyError("OOM command not allowed"), 1000, task.ErrFull, abreast + 1},
		"a lost reply":   {lost, 1000, task.ErrUnreachable, abreast + 1},
		"denied":         {busyError("NOPERM no"), 1000, task.ErrDenied, abreast + 1 + 5},
		"loading awhile": {busyError("LOADING"), abreast + 1, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrowd(t, testredis.Client(t))
			for range 5 {
				c.joins(t.Context(), task.New("job", nil))
			}
			c.gate.fail = func(call int32) error {
				if call > tt.times {
					return nil
				}
				return tt.err
			}
			for _, o := range c.all() {
				if !errors.Is(o.err, tt.want) || c.there(o.id) != (tt.want == nil) {
					t.Errorf("%+v", o)
				}
			}
			if n := c.gate.calls.Load(); tt.calls > 0 && n != tt.calls {
				t.Errorf("%d calls, want %d", n, tt.calls)
			}
		})
	}
}

func TestGroup_bounds(t *testing.T) {
	t.Parallel()
	calls := func(n, bytes int) (list []*call) {
		for range n {
			list = append(list, &call{ctx: t.Context(), task: task.Task{Payload: make([]byte, bytes)}})
		}
		return list
	}
	for _, tt := range []struct{ n, bytes, want int }{
		{0, 0, 0}, {1, aloneBytes, 1}, {999, 0, 999}, {1000, 0, 1000}, {1001, 0, 1000}, {5000, 64, 1000},
		{1000, aloneBytes, groupBytes / aloneBytes},
	} {
		if got := fitting(calls(tt.n, tt.bytes)); got != tt.want {
			t.Errorf("%d of %d bytes: %d fit, want %d", tt.n, tt.bytes, got, tt.want)
		}
	}
	mixed := calls(5, 1)
	mixed[3].ctx = queue.By(t.Context(), "ann") // Redis notes who made a lane
	if got := fitting(mixed); got != 3 {
		t.Errorf("of two actors: %d fit, want 3", got)
	}
}
