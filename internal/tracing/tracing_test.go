package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/task"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func record() (*tracing.Tracer, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	return tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), "shop"), spans
}

func TestNew_isOffWithoutAProvider(t *testing.T) {
	t.Parallel()
	if tracing.New(nil, "shop") != nil {
		t.Error("there is a tracer")
	}
}

// Redis measures the wait, so a clock of this machine that is wrong by an hour changes its start and its end, and not its length.
func TestRun_waitIsWhatRedisMeasured(t *testing.T) {
	t.Parallel()
	ago := time.Now().Add(-time.Hour)
	for name, c := range map[string]struct {
		task task.Task
		want time.Duration
	}{
		"first attempt":           {task.Task{Due: ago, Claimed: ago.Add(3 * time.Second)}, 3 * time.Second},
		"a retry":                 {task.Task{Due: ago, Claimed: ago.Add(time.Minute), Failures: []task.Failure{{At: ago.Add(50 * time.Second)}}}, 10 * time.Second},
		"claimed as if too early": {task.Task{Due: ago, Claimed: ago.Add(-time.Second)}, 0},
	} {
		tracer, spans := record()
		_, run := tracer.Run(t.Context(), &c.task)
		run.End("done", "", nil)
		list := spans.GetSpans()
		if len(list) != 2 || list[0].Name != "wait default" || list[0].EndTime.Sub(list[0].StartTime) != c.want {
			t.Errorf("%s: %+v", name, list)
		}
	}
}

func TestEnqueue_givesTheTaskItsTraceBack(t *testing.T) {
	t.Parallel()
	tracer, spans := record()
	one := task.New("job", nil, task.Trace(parent))
	one.TraceState = "a=1"
	_, sending := tracer.Enqueue(t.Context(), []*task.Task{one})
	if one.Trace == parent || one.Trace[:36] != parent[:36] || one.TraceState != "a=1" {
		t.Errorf("meanwhile it has %q, %q", one.Trace, one.TraceState)
	}
	sending.End(errors.New("no"))
	if one.Trace != parent || one.TraceState != "a=1" {
		t.Errorf("afterwards it has %q, %q", one.Trace, one.TraceState)
	}
	if s := spans.GetSpans()[0]; s.Status.Code != codes.Error || s.Status.Description != "no" {
		t.Errorf("status %+v", s.Status)
	}
}

func TestEnqueue_leavesOutALargeState(t *testing.T) {
	t.Parallel()
	tracer, _ := record()
	sc, _ := tracing.Parse(parent, "a="+strings.Repeat("x", 254))
	for _, c := range []struct {
		state string
		want  bool
	}{{"a=" + strings.Repeat("x", 254), true}, {"a=" + strings.Repeat("x", 250) + ",b=12345", false}} {
		state, err := trace.ParseTraceState(c.state)
		if err != nil {
			t.Fatal(err)
		}
		one := task.New("job", nil)
		_, sending := tracer.Enqueue(trace.ContextWithRemoteSpanContext(t.Context(), sc.WithTraceState(state)), []*task.Task{one})
		if got := one.TraceState == c.state; got != c.want || one.Trace == "" || !c.want && one.TraceState != "" {
			t.Errorf("of %d bytes: %q", len(c.state), one.TraceState)
		}
		sending.End(nil)
	}
}

func TestRun_cutsALongError(t *testing.T) {
	t.Parallel()
	tracer, spans := record()
	_, run := tracer.Run(t.Context(), task.New("job", nil))
	run.End("failed", "", errors.New(strings.Repeat("x", 1<<20)))
	if n := len(spans.GetSpans()[0].Status.Description); n > task.MaxFailureText+len("…") {
		t.Errorf("%d bytes", n)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{parent, "cc" + parent[2:] + "-x", "ff-0-0-0", "", "no\r\n\x1b[31m\u202e\u009b\xff"} {
		f.Add(s, "a=1")
	}
	f.Fuzz(func(t *testing.T, s, state string) {
		sc, ok := tracing.Parse(s, state)
		if !ok {
			return
		}
		if again, ok := tracing.Parse(tracing.Traceparent(sc), tracing.State(sc)); !ok || again.TraceID() != sc.TraceID() || again.SpanID() != sc.SpanID() {
			t.Fatalf("%q: %v", s, again)
		}
		if len(tracing.State(sc)) > tracing.MaxState {
			t.Fatalf("%q: a large state", state)
		}
	})
}

// An enqueue in one process and a run in another are one trace: the task carries the context.
func Example() {
	spans := tracetest.NewInMemoryExporter()
	tracer := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), "shop")

	ctx := context.Background()
	t := task.New("invoice.send", nil)
	_, sending := tracer.Enqueue(ctx, []*task.Task{t})
	record := *t // goes through Redis
	sending.End(nil)

	_, run := tracer.Run(ctx, &record)
	run.End("done", "", nil)

	list := spans.GetSpans()
	fmt.Println(list[0].Name, "->", list[1].Name, list[1].Parent.SpanID() == list[0].SpanContext.SpanID())
	// Output: enqueue default -> run default true
}
