package tracing

import (
	"context"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/task"
)

// Run is the span of one run.
type Run struct {
	span trace.Span
	task *task.Task
}

// Run begins the span of a run, and records the wait before it. A handler finds the span in the context that Run returns.
//
// The run of a task is a child of the span of its enqueue, and so is each retry: attempts are siblings. The run of a slot is a root,
// with a link to the push of the slot, or from the second attempt on to the first attempt.
func (t *Tracer) Run(ctx context.Context, tk *task.Task) (context.Context, *Run) {
	queue, now := tk.QueueName(), time.Now()
	options := []trace.SpanStartOption{
		trace.WithTimestamp(now), trace.WithSpanKind(trace.SpanKindConsumer), t.start("run", queue, semconv.MessagingOperationTypeProcess),
	}
	sc, traced := Parse(tk.Trace, tk.TraceState)
	child := traced && tk.Schedule == ""
	switch {
	case child:
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
	case traced:
		options = append(options, trace.WithNewRoot(), trace.WithLinks(trace.Link{SpanContext: sc}))
	default:
		options = append(options, trace.WithNewRoot()) // not a child of a span with which the instance was started
	}
	run, span := t.tracer.Start(ctx, named("run", queue), options...)
	if span.IsRecording() {
		span.SetAttributes(append(message(tk), semconv.MessagingClientID(tk.Instance),
			Attempt.Int(tk.Attempt), Fence.Int64(tk.Fence), Instance.String(tk.Instance), Release.String(tk.Release))...)
		if child {
			t.wait(ctx, tk, now)
		} else {
			t.wait(run, tk, now)
		}
	}
	return run, &Run{span: span, task: tk}
}

// wait records how long the task waited from its due time, or from the end of the last attempt, to its claim. Redis measured
// that; the span lies right before the run on the clock of this machine, so that a wrong clock moves the two together.
func (t *Tracer) wait(ctx context.Context, tk *task.Task, until time.Time) {
	from := tk.Due
	if n := len(tk.Failures); n > 0 && tk.Failures[n-1].At.After(from) {
		from = tk.Failures[n-1].At
	}
	if from.IsZero() || tk.Claimed.IsZero() {
		return
	}
	queue := tk.QueueName()
	_, span := t.tracer.Start(ctx, named("wait", queue), trace.WithTimestamp(until.Add(-max(tk.Claimed.Sub(from), 0))),
		t.start("wait", queue, semconv.MessagingMessageID(tk.ID)))
	span.End(trace.WithTimestamp(until))
}

// Failed gives the task of a slot a link to its first attempt, if that is sampled. The next attempts have this link. The caller writes
// the record afterwards.
func (r *Run) Failed() {
	if t := r.task; t.Schedule != "" && t.Attempt == 1 {
		if first := link(r.span); first != "" {
			t.Trace = first
		}
	}
}

// End ends the span with the outcome of the run, a word of the history. Err is why the run failed, or nil. Kind names its kind, such
// as "timeout"; if it is "", that is the Go type of err.
func (r *Run) End(outcome, kind string, err error) {
	if r.span.IsRecording() {
		r.span.SetAttributes(Outcome.String(outcome))
		failed(r.span, kind, err)
	}
	r.span.End()
}
