package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/task"
)

// bare returns a consumer and a run of a task whose handler does nothing, without Redis.
func bare(t testing.TB, p trace.TracerProvider, err error) (*Consumer, func()) {
	t.Helper()
	c, bad := New(nil, "shop", one(t, func(context.Context, *task.Task) error { return err }), Config{TracerProvider: p})
	must(t, bad)
	results := make(chan result, 1)
	job := task.New("job", nil, task.ID("t"), task.Trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))
	parent := t.Context()
	return c, func() {
		r := &run{runContext: runContext{parent: parent, task: job, deadline: time.Now().Add(time.Hour)}}
		c.work(r, results)
		<-results
	}
}

// Without a provider a run allocates what it allocated before there were traces: itself.
func TestTraced_costsNothingWhenOff(t *testing.T) {
	_, work := bare(t, nil, nil)
	if n := testing.AllocsPerRun(100, work); n > 1 {
		t.Errorf("%v allocations, want 1", n)
	}
}

// BenchmarkWork is all that a run costs besides Redis: without traces, with a provider that does nothing,
// and without the code for traces.
func BenchmarkWork(b *testing.B) {
	for _, c := range []struct {
		name string
		p    trace.TracerProvider
	}{{"nil", nil}, {"noop", noop.NewTracerProvider()}} {
		b.Run(c.name, func(b *testing.B) {
			_, work := bare(b, c.p, nil)
			b.ReportAllocs()
			for b.Loop() {
				work()
			}
		})
	}
	b.Run("without", func(b *testing.B) {
		c, _ := bare(b, nil, nil)
		results := make(chan result, 1)
		job := task.New("job", nil, task.ID("t"))
		parent := b.Context()
		b.ReportAllocs()
		for b.Loop() {
			r := &run{runContext: runContext{parent: parent, task: job, deadline: time.Now().Add(time.Hour)}}
			h, _ := c.handlers.Handler(r.task.Type)
			handlers.Do(r, h, r.task, func(err error) {
				out := c.outcome(r, r.why(), err)
				r.over()
				results <- out
			})
			<-results
		}
	})
}

// The outcome in the span is the word that the history has for the run.
func TestTraced_outcomes(t *testing.T) {
	t.Parallel()
	fail := errors.New("no")
	for name, c := range map[string]struct {
		cause, err error
		want       string
	}{
		"done": {nil, nil, "done"}, "failed": {nil, fail, "failed"}, "dead": {nil, handlers.Dead(fail), "dead"},
		"drained": {ErrDrained, fail, "returned"}, "cancelled": {ErrCancelled, fail, "cancelled"}, "replaced": {ErrReplaced, fail, "cancelled"},
		"lost": {errors.New("the lease is lost"), fail, "lost"}, "timeout": {ErrTimeout, fail, "failed"}, "done late": {ErrTimeout, nil, "done"},
	} {
		spans := tracetest.NewInMemoryExporter()
		p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
		consumer, _ := bare(t, p, nil)
		r := &run{runContext: runContext{parent: t.Context(), task: task.New("job", nil, task.ID("t")), deadline: time.Now().Add(time.Hour)}}
		_, span := consumer.tracer.Run(t.Context(), r.task)
		consumer.outcomeTraced(span, r, c.cause, c.err)
		got := ""
		for _, kv := range spans.GetSpans()[0].Attributes {
			if kv.Key == tracing.Outcome {
				got = kv.Value.AsString()
			}
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A span leaves the process, as a log does: it shows nothing of a payload that is secret.
func TestTraced_hidesSecrets(t *testing.T) {
	t.Parallel()
	spans := tracetest.NewInMemoryExporter()
	consumer, _ := bare(t, sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), nil)
	job := task.New("job", map[string]string{"card": "4111-1111"}, task.ID("t"))
	job.Secret = []string{"card"}
	for _, cause := range []error{nil, ErrTimeout} {
		spans.Reset()
		r := &run{runContext: runContext{parent: t.Context(), task: job, deadline: time.Now().Add(time.Hour)}}
		_, span := consumer.tracer.Run(t.Context(), r.task)
		consumer.outcomeTraced(span, r, cause, errors.New("the bank refuses 4111-1111"))
		text := fmt.Sprint(spans.GetSpans())
		if strings.Contains(text, "4111-1111") || !strings.Contains(text, "the bank refuses ***") {
			t.Errorf("%s", text)
		}
	}
}
