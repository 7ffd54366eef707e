package consumer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func newRunContext(parent context.Context, timeout time.Duration) *runContext {
	return &runContext{parent: parent, task: task.New("job", nil, task.ID("t")), deadline: time.Now().Add(timeout)}
}

// For every cause that ends a run, three handlers learn the same: one that asks before, one that asks after, and one with a
// context of its own.
func TestRunContext_endsWithItsCause(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		end  func(*runContext, context.CancelCauseFunc)
		want error
		err  error
	}{
		"session":      {func(_ *runContext, session context.CancelCauseFunc) { session(lost) }, lost, context.Canceled},
		"cancelled":    {func(r *runContext, _ context.CancelCauseFunc) { r.end(ErrCancelled) }, ErrCancelled, context.Canceled},
		"first of two": {func(r *runContext, _ context.CancelCauseFunc) { r.end(ErrCancelled); r.end(ErrDrained) }, ErrCancelled, context.Canceled},
		"timeout":      {func(*runContext, context.CancelCauseFunc) { time.Sleep(time.Minute + time.Millisecond) }, ErrTimeout, context.DeadlineExceeded},
	} {
		for _, asks := range []string{"never", "before", "after", "child"} {
			t.Run(name+" "+asks, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					parent, session := context.WithCancelCause(context.Background())
					defer session(nil)
					r := newRunContext(parent, time.Minute)
					defer r.over()
					var ctx context.Context = r
					switch asks {
					case "before":
						_ = r.Done()
					case "child":
						child, done := context.WithCancel(r)
						defer done()
						ctx = child
					}
					if ctx.Err() != nil || r.why() != nil {
						t.Fatalf("it has ended before: %v, %v", ctx.Err(), r.why())
					}
					c.end(r, session)
					if asks == "after" || asks == "child" {
						<-ctx.Done()
					}
					if err := ctx.Err(); !errors.Is(err, c.err) {
						t.Errorf("Err is %v, want %v", err, c.err)
					}
					if got := r.why(); !errors.Is(got, c.want) {
						t.Errorf("it says %v, want %v", got, c.want)
					}
					if got := context.Cause(ctx); !errors.Is(got, c.want) {
						t.Errorf("Cause is %v, want %v", got, c.want)
					}
				})
			})
		}
	}
}

func TestRunContext_carriesTheTaskAndEndsWithTheRun(t *testing.T) {
	t.Parallel()
	type key struct{}
	r := newRunContext(context.WithValue(t.Context(), key{}, "v"), time.Hour)
	if got := handlers.FromContext(r); got != r.task {
		t.Errorf("the task is %v", got)
	}
	if got := r.Value(key{}); got != "v" {
		t.Errorf("a value of the parent is %v", got)
	}
	if at, ok := r.Deadline(); !ok || !at.Equal(r.deadline) {
		t.Errorf("the deadline is %v, %v", at, ok)
	}
	kept := newRunContext(t.Context(), time.Hour)
	kept.over()
	r.over()
	for _, ctx := range []*runContext{r, kept} {
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("after the run: %v", ctx.Err())
		}
	}
}

// A run whose handler asks nothing of its context costs one allocation here.
func TestRunContext_costsNothingUnlessAsked(t *testing.T) {
	parent := t.Context()
	job := task.New("job", nil)
	var sink context.Context
	n := testing.AllocsPerRun(100, func() {
		r := &runContext{parent: parent, task: job, deadline: time.Now().Add(time.Hour)}
		sink = r
		_ = r.why()
		_ = handlers.FromContext(r)
		r.over()
	})
	_ = sink
	if n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}
