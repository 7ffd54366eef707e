package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

var quiet = zerolog.New(io.Discard).Level(zerolog.WarnLevel)

func explode(context.Context, *task.Task) error { panic("boom") }

func TestRecover_makesAPanicAFailedRun(t *testing.T) {
	t.Parallel()
	err := handlers.Recover()(handlers.Func(explode)).Handle(t.Context(), &task.Task{})
	var p *handlers.PanicError
	if !errors.As(err, &p) || p.Value != "boom" || err.Error() != "panic: boom" {
		t.Fatalf("Handle = %v", err)
	}
	if first, _, _ := strings.Cut(string(p.Stack), "\n"); !strings.Contains(first, "handlers_test.explode") {
		t.Errorf("the stack begins with %q, want the function that panicked:\n%s", first, p.Stack)
	}
	if !strings.Contains(string(p.Stack), "middleware_test.go:") {
		t.Errorf("no line of the panic in\n%s", p.Stack)
	}
}

func TestRecover_knowsEveryKindOfPanic(t *testing.T) {
	t.Parallel()
	var none *task.Task
	for name, fn := range map[string]handlers.Func{
		"nil":        func(context.Context, *task.Task) error { panic(nil) },
		"error":      func(context.Context, *task.Task) error { panic(io.EOF) },
		"nil access": func(context.Context, *task.Task) error { none.Attempts++; return nil },
	} {
		err := handlers.Recover()(fn).Handle(t.Context(), &task.Task{})
		if _, ok := errors.AsType[*handlers.PanicError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
		if name == "error" && !errors.Is(err, io.EOF) {
			t.Errorf("%v does not unwrap to EOF", err)
		}
	}
}

func TestDo_callsDoneOnceWhateverHappens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fn   handlers.Func
		want func(error) bool
	}{
		"done":   {nothing, func(err error) bool { return err == nil }},
		"failed": {func(context.Context, *task.Task) error { return io.EOF }, func(err error) bool { return err == io.EOF }},
		"panic":  {explode, func(err error) bool { p, ok := errors.AsType[*handlers.PanicError](err); return ok && len(p.Stack) > 0 }},
		"goexit": {func(context.Context, *task.Task) error { runtime.Goexit(); return nil },
			func(err error) bool { return errors.Is(err, handlers.ErrGoexit) }},
		"goexit within Recover": {handlers.Recover()(handlers.Func(func(context.Context, *task.Task) error { runtime.Goexit(); return nil })).Handle,
			func(err error) bool { return errors.Is(err, handlers.ErrGoexit) }},
	} {
		ended := make(chan struct{})
		var got []error
		go func() {
			defer close(ended)
			handlers.Do(context.Background(), c.fn, &task.Task{}, func(err error) { got = append(got, err) })
		}()
		<-ended
		if len(got) != 1 || !c.want(got[0]) {
			t.Errorf("%s: done was called with %v", name, got)
		}
	}
}

func TestTimeout_endsTheContextWithACause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := handlers.Timeout(time.Second)(handlers.Func(func(ctx context.Context, _ *task.Task) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		start := time.Now()
		err := h.Handle(t.Context(), &task.Task{})
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %s", took)
		}
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != "run took longer than 1s: context deadline exceeded" {
			t.Errorf("cause = %v", err)
		}
	})
}

func TestTimeout_keepsAnEarlierEndAndItsCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, io.EOF)
		defer cancel()
		h := handlers.Timeout(time.Second)(handlers.Func(func(ctx context.Context, _ *task.Task) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		if err := h.Handle(ctx, &task.Task{}); err != io.EOF {
			t.Errorf("cause = %v", err)
		}
	})
}

// logged runs fn within Log and returns what was written.
func logged(t *testing.T, level zerolog.Level, x *task.Task, fn handlers.Func) map[string]any {
	t.Helper()
	var out bytes.Buffer
	h := handlers.Log(zerolog.New(&out).Level(level))(handlers.Recover()(fn))
	_ = h.Handle(t.Context(), x)
	if out.Len() == 0 {
		return nil
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatalf("%q: %v", out.String(), err)
	}
	if _, ok := got["took"].(float64); !ok {
		t.Errorf("took = %v", got["took"])
	}
	return got
}

func expectFields(t *testing.T, got, want map[string]any) {
	t.Helper()
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s = %v, want %v (in %v)", k, got[k], v, got)
		}
	}
}

func TestLog_writesHowARunEnded(t *testing.T) {
	t.Parallel()
	x := &task.Task{ID: "id", Type: "a", Schedule: "nightly", Slot: time.UnixMilli(100), Attempt: 2, Payload: []byte("hunter2")}
	same := map[string]any{"task": "id", "type": "a", "schedule": "nightly", "slot": "1970-01-01T00:00:00.100Z", "attempt": 2.0}

	got := logged(t, zerolog.DebugLevel, x, nothing)
	expectFields(t, got, same)
	expectFields(t, got, map[string]any{"level": "debug", "message": "task done"})

	got = logged(t, zerolog.WarnLevel, x, func(context.Context, *task.Task) error { return io.EOF })
	expectFields(t, got, same)
	expectFields(t, got, map[string]any{"level": "warn", "message": "task failed", "error": "EOF", "dead": nil, "retry_after": nil, "stack": nil})

	got = logged(t, zerolog.WarnLevel, x, func(context.Context, *task.Task) error { return handlers.Dead(io.EOF) })
	expectFields(t, got, map[string]any{"dead": true, "error": "EOF"})

	got = logged(t, zerolog.WarnLevel, x, func(context.Context, *task.Task) error { return handlers.RetryAfter(io.EOF, 3*time.Second) })
	expectFields(t, got, map[string]any{"retry_after": 3000.0, "dead": nil})

	got = logged(t, zerolog.WarnLevel, x, explode)
	expectFields(t, got, map[string]any{"error": "panic: boom"})
	if s, _ := got["stack"].(string); !strings.Contains(s, "explode") {
		t.Errorf("stack = %q", s)
	}
	for k, v := range got {
		if s, ok := v.(string); ok && strings.Contains(s, "hunter2") {
			t.Errorf("%s shows the payload: %q", k, s)
		}
	}
}

func TestLog_isSilentBelowItsLevel(t *testing.T) {
	t.Parallel()
	if got := logged(t, zerolog.InfoLevel, &task.Task{}, nothing); got != nil {
		t.Errorf("wrote %v", got)
	}
	if got := logged(t, zerolog.Disabled, &task.Task{}, explode); got != nil {
		t.Errorf("wrote %v", got)
	}
	got := logged(t, zerolog.DebugLevel, &task.Task{}, nothing)
	expectFields(t, got, map[string]any{"schedule": nil, "slot": nil})
}

// ticker is scheduled by being registered.
type ticker struct{ handlers.Func }

func (ticker) Schedule() schedule.Rule { return schedule.Every(time.Second) }
func (ticker) Payload() any            { return map[string]int{"n": 1} }

func TestAs_findsOptionalInterfacesThroughMiddleware(t *testing.T) {
	t.Parallel()
	var h handlers.TaskHandler = ticker{nothing}
	for _, mw := range []handlers.Middleware{handlers.Recover(), handlers.Timeout(time.Second), handlers.Timeout(0), handlers.Log(quiet)} {
		h = mw(h)
	}
	s, ok := handlers.As[handlers.Scheduled](h)
	if !ok || s.Schedule().Every != time.Second {
		t.Errorf("As[Scheduled] = %v, %t", s, ok)
	}
	if p, ok := handlers.As[handlers.WithPayload](h); !ok || p.Payload() == nil {
		t.Errorf("As[WithPayload] = %v, %t", p, ok)
	}
	if _, ok := handlers.As[handlers.PayloadChecker](h); ok {
		t.Error("As[PayloadChecker] found one")
	}
	if _, ok := handlers.As[handlers.Scheduled](nil); ok {
		t.Error("As found one in nil")
	}
}
