package onbeat_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// docs/traces.md names the test of each claim; tests are renamed.
func TestTraces_pageNamesTestsThatExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/traces.md")
	must(t, err)
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		must(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			must(t, err)
			tests.Write(source)
		}
	}
	names := regexp.MustCompile(`\b(?:Test|Benchmark)\w+`).FindAllString(string(text), -1)
	if len(names) < 10 {
		t.Errorf("the page names only %q", names)
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+name+"(") {
			t.Errorf("there is no %s", name)
		}
	}
}

// recording is a provider whose spans the test reads.
type recording struct {
	*testing.T
	*sdktrace.TracerProvider
	spans *tracetest.InMemoryExporter
}

func newRecording(t *testing.T, options ...sdktrace.TracerProviderOption) *recording {
	t.Helper()
	r := &recording{T: t, spans: tracetest.NewInMemoryExporter()}
	r.TracerProvider = sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(r.spans))...)
	return r
}

// named waits for n spans of a name, in the order in which they ended.
func (r *recording) named(name string, n int) []tracetest.SpanStub {
	r.Helper()
	var list []tracetest.SpanStub
	testredis.Eventually(r.T, patience, func() bool {
		list = slices.DeleteFunc(r.spans.GetSpans(), func(s tracetest.SpanStub) bool { return s.Name != name })
		return len(list) >= n
	}, "%d spans %q", n, name)
	return list
}

func attributeOf(s tracetest.SpanStub, key string) string {
	for _, kv := range s.Attributes {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

func wantAttributes(t *testing.T, s tracetest.SpanStub, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := attributeOf(s, key); got != value {
			t.Errorf("%s: %s = %q, want %q", s.Name, key, got, value)
		}
	}
}

func TestTraces_anEnqueueItsWaitAndItsRunAreOne(t *testing.T) {
	t.Parallel()
	rec := newRecording(t)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{TracerProvider: rec, Release: "v1"})
	own := rec.Tracer("test")
	must(t, d.Handle("job", handlers.Func(func(ctx context.Context, _ *task.Task) error {
		_, span := own.Start(ctx, "inner")
		span.End()
		return nil
	})))
	ctx, caller := own.Start(t.Context(), "caller")
	added := task.New("job", map[string]string{"secret": "hush"}, task.Queue("q"))
	id, err := d.Enqueue(ctx, added)
	caller.End()
	must(t, err)
	run(t, d)

	enqueue, wait, ran, inner := rec.named("enqueue q", 1)[0], rec.named("wait q", 1)[0], rec.named("run q", 1)[0], rec.named("inner", 1)[0]
	for _, c := range []struct{ child, parent trace.SpanContext }{
		{enqueue.Parent, caller.SpanContext()}, {wait.Parent, enqueue.SpanContext}, {ran.Parent, enqueue.SpanContext}, {inner.Parent, ran.SpanContext},
	} {
		if c.child.SpanID() != c.parent.SpanID() || c.child.TraceID() != c.parent.TraceID() {
			t.Errorf("a span's parent is %v, want %v", c.child, c.parent)
		}
	}
	if enqueue.SpanKind != trace.SpanKindProducer || ran.SpanKind != trace.SpanKindConsumer || !ran.Parent.IsRemote() {
		t.Errorf("kinds %v and %v, remote %v", enqueue.SpanKind, ran.SpanKind, ran.Parent.IsRemote())
	}
	if !wait.EndTime.Equal(ran.StartTime) || wait.StartTime.After(wait.EndTime) {
		t.Errorf("it waited from %v to %v, and ran from %v", wait.StartTime, wait.EndTime, ran.StartTime)
	}
	both := map[string]string{"messaging.system": "onbeat", "messaging.destination.name": "q", "messaging.message.id": id, "onbeat.type": "job",
		"messaging.message.body.size": fmt.Sprint(len(added.Payload))}
	wantAttributes(t, enqueue, both)
	wantAttributes(t, enqueue, map[string]string{"messaging.operation.type": "send", "messaging.operation.name": "enqueue"})
	wantAttributes(t, ran, both)
	wantAttributes(t, ran, map[string]string{"messaging.operation.type": "process", "messaging.operation.name": "run", "onbeat.attempt": "1",
		"onbeat.outcome": "done", "onbeat.release": "v1"})
	if attributeOf(ran, "onbeat.instance") == "" || attributeOf(ran, "onbeat.fence") == "" || attributeOf(ran, "onbeat.slot") != "" {
		t.Errorf("attributes of the run: %v", ran.Attributes)
	}
	if added.Trace != "" {
		t.Errorf("the caller's task keeps the trace %q", added.Trace)
	}
	if all := fmt.Sprint(rec.spans.GetSpans()); strings.Contains(all, "hush") {
		t.Error("a span has the payload")
	}
}

func TestTraces_retriesAreSiblings(t *testing.T) {
	t.Parallel()
	rec := newRecording(t)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{TracerProvider: rec})
	must(t, d.Handle("job", handlers.Func(func(_ context.Context, t *task.Task) error {
		switch t.Attempt {
		case 1:
			return errors.New("no such luck")
		case 2:
			panic("no")
		}
		return handlers.Dead(errors.New("enough"))
	})))
	run(t, d)
	_, err := d.Enqueue(t.Context(), task.New("job", nil, task.Retry(time.Millisecond, time.Millisecond)))
	must(t, err)
	enqueue, runs := rec.named("enqueue default", 1)[0], rec.named("run default", 3)
	for i, want := range []struct{ outcome, kind, text string }{
		{"failed", "*errors.errorString", "no such luck"}, {"failed", "panic", "panic: no"}, {"dead", "*handlers.deadError", "enough"},
	} {
		ran := runs[i]
		if ran.Parent.SpanID() != enqueue.SpanContext.SpanID() || ran.SpanContext.TraceID() != enqueue.SpanContext.TraceID() {
			t.Errorf("attempt %d is not a child of the enqueue", i+1)
		}
		wantAttributes(t, ran, map[string]string{"onbeat.attempt": fmt.Sprint(i + 1), "onbeat.outcome": want.outcome, "error.type": want.kind})
		if ran.Status.Code != codes.Error || ran.Status.Description != want.text || len(ran.Events) != 1 || ran.Events[0].Name != "exception" {
			t.Errorf("attempt %d: %+v, %+v", i+1, ran.Status, ran.Events)
		}
	}
}

func TestTraces_aSlotIsARootWithALink(t *testing.T) {
	t.Parallel()
	rec := newRecording(t)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{TracerProvider: rec, Lease: time.Second})
	must(t, d.Handle("job", handlers.Func(func(_ context.Context, t *task.Task) error {
		if t.Attempt < 3 {
			return errors.New("not yet")
		}
		return nil
	})))
	must(t, d.Schedule("beat", schedule.Every(time.Hour), "job", nil, task.Retry(time.Millisecond, time.Millisecond)))
	run(t, d)
	runs, push := rec.named("run default", 3), rec.named("push", 1)[0]
	wantAttributes(t, push, map[string]string{"messaging.operation.name": "push", "messaging.operation.type": "send", "messaging.batch.message_count": "1"})
	to := []trace.SpanContext{push.SpanContext, runs[0].SpanContext, runs[0].SpanContext}
	seen := map[trace.TraceID]bool{}
	for i, ran := range runs {
		if ran.Parent.IsValid() || seen[ran.SpanContext.TraceID()] {
			t.Errorf("attempt %d is no root", i+1)
		}
		seen[ran.SpanContext.TraceID()] = true
		if len(ran.Links) != 1 || ran.Links[0].SpanContext.SpanID() != to[i].SpanID() || ran.Links[0].SpanContext.TraceID() != to[i].TraceID() {
			t.Errorf("attempt %d has the links %v, want one to %v", i+1, ran.Links, to[i])
		}
		wantAttributes(t, ran, map[string]string{"onbeat.schedule": "beat", "onbeat.attempt": fmt.Sprint(i + 1)})
		if _, err := time.Parse(time.RFC3339, attributeOf(ran, "onbeat.slot")); err != nil {
			t.Error(err)
		}
	}
	for i, wait := range rec.named("wait default", 3) {
		if wait.Parent.SpanID() != runs[i].SpanContext.SpanID() {
			t.Errorf("wait %d is not in the trace of its run", i+1)
		}
	}
}

func TestTraces_aBatchSharesItsSpan(t *testing.T) {
	t.Parallel()
	rec := newRecording(t)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{TracerProvider: rec})
	must(t, d.Handle("job", handlers.Func(nothing)))
	run(t, d)
	own := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	batch := []*task.Task{task.New("job", nil, task.ID("a")), task.New("job", nil, task.ID("a")), task.New("job", nil, task.Trace(own))}
	_, err := d.EnqueueAll(t.Context(), batch)
	must(t, err)
	enqueue, runs := rec.named("enqueue default", 1)[0], rec.named("run default", 2)
	wantAttributes(t, enqueue, map[string]string{"messaging.batch.message_count": "3", "onbeat.duplicates": "1", "messaging.message.id": ""})
	if enqueue.Status.Code == codes.Error {
		t.Errorf("a duplicate is an error: %v", enqueue.Status)
	}
	parents := map[string]bool{}
	for _, ran := range runs {
		parents[ran.Parent.SpanID().String()] = true
	}
	if !parents[enqueue.SpanContext.SpanID().String()] || !parents["b7ad6b7169203331"] {
		t.Errorf("the parents are %v", parents)
	}
	if batch[0].Trace != "" || batch[2].Trace != own {
		t.Errorf("the caller's tasks have the traces %q and %q", batch[0].Trace, batch[2].Trace)
	}
}

// A trace that is not sampled is not recorded later either, and a slot then has no link.
func TestTraces_aSamplerDecidesForTheWholeTrace(t *testing.T) {
	t.Parallel()
	rec := newRecording(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
	d := dispatcher(t, testredis.Client(t), onbeat.Config{TracerProvider: rec})
	var slot, called atomic.Pointer[task.Task]
	var flags atomic.Int32
	must(t, d.Handle("slot", handlers.Func(func(_ context.Context, t *task.Task) error { slot.Store(t); return nil })))
	must(t, d.Handle("job", handlers.Func(func(ctx context.Context, t *task.Task) error {
		flags.Store(int32(trace.SpanContextFromContext(ctx).TraceFlags()))
		called.Store(t)
		return nil
	})))
	must(t, d.Schedule("slot", schedule.Every(time.Hour), "slot", nil))
	run(t, d)
	_, err := d.Enqueue(t.Context(), task.New("job", nil))
	must(t, err)
	testredis.Eventually(t, patience, func() bool { return slot.Load() != nil && called.Load() != nil }, "they run")
	if got := slot.Load().Trace; got != "" {
		t.Errorf("the slot has the trace %q", got)
	}
	if got := called.Load().Trace; !strings.HasSuffix(got, "-00") || flags.Load() != 0 {
		t.Errorf("the task has the trace %q, and its run the flags %d", got, flags.Load())
	}
	if list := rec.spans.GetSpans(); len(list) > 0 {
		t.Errorf("recorded %v", list)
	}
}

// Without a provider, and with one that does nothing, the record is the same as if there were no traces, byte for byte.
func TestTraces_offChangesNoRecord(t *testing.T) {
	t.Parallel()
	rdb := testredis.Client(t)
	caller := sdktrace.NewTracerProvider().Tracer("test")
	for name, c := range map[string]struct {
		provider trace.TracerProvider
		caller   bool
	}{"none": {nil, true}, "noop": {noop.NewTracerProvider(), false}} {
		ns := testredis.Namespace(t)
		d := dispatcher(t, rdb, onbeat.Config{Namespace: ns, TracerProvider: c.provider})
		ctx := t.Context()
		if c.caller {
			ctx, _ = caller.Start(ctx, "caller")
		}
		added := task.New("job", "payload", task.ID("x"), task.In(time.Hour))
		added.Created = time.UnixMilli(1_800_000_000_000).UTC()
		want := *added
		want.Keep = task.DefaultKeepByID
		_, err := d.Enqueue(ctx, added)
		must(t, err)
		got := rdb.HGet(t.Context(), "onbeat:{"+ns+"}:tasks", "x").Val()
		if got != string(task.Encode(nil, &want)) {
			t.Errorf("%s: the record is %q", name, got)
		}
	}
}

func TestTraces_theHTTPHandlerSendsTheSpanOfItsRun(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	got := map[string]http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got[q.Header.Get("Onbeat-Schedule")] = q.Header.Clone()
	}))
	defer server.Close()
	rec := newRecording(t)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{TracerProvider: rec})
	must(t, d.Handle("http", handlers.HTTP(handlers.HTTPConfig{})))
	payload := map[string]string{"url": server.URL}
	must(t, d.Schedule("beat", schedule.Every(time.Hour), "http", payload))
	run(t, d)
	state, err := trace.ParseTraceState("vendor=1")
	must(t, err)
	parent, _ := tracing.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	_, err = d.Enqueue(trace.ContextWithRemoteSpanContext(t.Context(), parent.WithTraceState(state)), task.New("http", payload))
	must(t, err)
	for _, ran := range rec.named("run default", 2) {
		name := attributeOf(ran, "onbeat.schedule")
		mu.Lock()
		header := got[name]
		mu.Unlock()
		if want := tracing.Traceparent(ran.SpanContext); header.Get("Traceparent") != want {
			t.Errorf("%q: traceparent %q, want %q", name, header.Get("Traceparent"), want)
		}
		if want := map[string]string{"": "vendor=1"}[name]; header.Get("Tracestate") != want {
			t.Errorf("%q: tracestate %q, want %q", name, header.Get("Tracestate"), want)
		}
	}
}

// A kind of failure that the context of the run tells: the text has what the log has.
func TestTraces_aTimeoutIsAKindOfError(t *testing.T) {
	t.Parallel()
	rec := newRecording(t)
	d := dispatcher(t, testredis.Client(t), onbeat.Config{TracerProvider: rec})
	must(t, d.Handle("job", handlers.Func(func(ctx context.Context, _ *task.Task) error {
		<-ctx.Done()
		return fmt.Errorf("stopped: %w", ctx.Err())
	})))
	run(t, d)
	_, err := d.Enqueue(t.Context(), task.New("job", nil, task.Timeout(time.Millisecond), task.MaxAttempts(1)))
	must(t, err)
	ran := rec.named("run default", 1)[0]
	wantAttributes(t, ran, map[string]string{"error.type": "timeout", "onbeat.outcome": "dead"})
	if !strings.HasPrefix(ran.Status.Description, "the run timed out after 1ms: stopped: ") {
		t.Errorf("status %+v", ran.Status)
	}
	if !slices.Contains(ran.Events[0].Attributes, attribute.String("exception.type", "timeout")) {
		t.Errorf("events %+v", ran.Events)
	}
}
