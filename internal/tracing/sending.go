package tracing

import (
	"context"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Sending is the span of tasks on their way into Redis.
type Sending struct {
	span          trace.Span
	tasks         []*task.Task
	trace         string // what the tasks carry meanwhile
	was, wasState string // of a single task
}

// Enqueue begins the span of an enqueue, and has the tasks carry it into their records until [Sending.End]. Tasks of one call
// share the span.
//
// The parent is the Trace of a single task, if it has one, else the span in ctx. Of several tasks, those with a Trace keep it.
func (t *Tracer) Enqueue(ctx context.Context, tasks []*task.Task) (context.Context, *Sending) {
	s := &Sending{tasks: tasks}
	queue := sameQueue(tasks)
	if one := s.single(); one != nil {
		s.was, s.wasState = one.Trace, one.TraceState
		if sc, ok := Parse(one.Trace, one.TraceState); ok {
			ctx = trace.ContextWithRemoteSpanContext(ctx, sc)
		}
	}
	ctx, s.span = t.tracer.Start(ctx, named("enqueue", queue), trace.WithSpanKind(trace.SpanKindProducer),
		t.start("enqueue", queue, semconv.MessagingOperationTypeSend))
	if s.span.IsRecording() {
		s.describe()
	}
	s.carry()
	return ctx, s
}

func (s *Sending) single() *task.Task {
	if len(s.tasks) == 1 {
		return s.tasks[0]
	}
	return nil
}

func (s *Sending) describe() {
	if one := s.single(); one != nil {
		s.span.SetAttributes(message(one)...)
		return
	}
	s.span.SetAttributes(semconv.MessagingBatchMessageCount(len(s.tasks)))
}

// carry writes the span into the tasks. A span that is not sampled goes along too: the runs then are not sampled either.
func (s *Sending) carry() {
	sc := s.span.SpanContext()
	s.trace = Traceparent(sc)
	if s.trace == "" {
		return
	}
	state := State(sc)
	for _, t := range s.tasks {
		if len(s.tasks) == 1 || t.Trace == "" {
			t.Trace, t.TraceState = s.trace, state
		}
	}
}

// Duplicates notes that n of the tasks were refused because they exist already. That is not an error.
func (s *Sending) Duplicates(n int) {
	if n > 0 {
		s.span.SetAttributes(Duplicates.Int(n))
	}
}

// End ends the span, and gives the tasks of an enqueue back the Trace that they had: a task that its caller enqueues again must not
// become a child of the first try.
func (s *Sending) End(err error) {
	failed(s.span, "", err)
	s.span.End()
	if one := s.single(); one != nil {
		one.Trace, one.TraceState = s.was, s.wasState
		return
	}
	for _, t := range s.tasks {
		if s.trace != "" && t.Trace == s.trace {
			t.Trace, t.TraceState = "", ""
		}
	}
}

// Push begins the span of one call with which the leader pushes slots. It is a root. The slots have no spans of their own here:
// they come in batches of thousands.
func (t *Tracer) Push(ctx context.Context, instance string, slots int) (context.Context, *Sending) {
	s := &Sending{}
	ctx, s.span = t.tracer.Start(ctx, "push", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindProducer),
		t.start("push", "", semconv.MessagingOperationTypeSend))
	if s.span.IsRecording() {
		s.span.SetAttributes(semconv.MessagingBatchMessageCount(slots), semconv.MessagingClientID(instance), Instance.String(instance))
	}
	return ctx, s
}

// Link returns the traceparent that a slot carries, to which its runs have a link: "" if the span is not sampled, because a link to
// it would lead nowhere.
func (s *Sending) Link() string { return link(s.span) }

func link(span trace.Span) string {
	if sc := span.SpanContext(); sc.IsSampled() {
		return Traceparent(sc)
	}
	return ""
}

// sameQueue returns the queue of all tasks, or "" if they have several.
func sameQueue(tasks []*task.Task) string {
	name := ""
	for i, t := range tasks {
		if i > 0 && t.QueueName() != name {
			return ""
		}
		name = t.QueueName()
	}
	return name
}

func named(operation, queue string) string {
	if queue == "" {
		return operation
	}
	return operation + " " + queue
}

// failed records an error, if there is one, with the text that the log has, cut at the length at which a task keeps it.
func failed(span trace.Span, kind string, err error) {
	if err == nil || !span.IsRecording() {
		return
	}
	text := wording.Cut(err.Error(), task.MaxFailureText)
	typ := semconv.ErrorType(err)
	if kind != "" {
		typ = semconv.ErrorTypeKey.String(kind)
	}
	span.SetAttributes(typ)
	span.AddEvent(semconv.ExceptionEventName, trace.WithAttributes(semconv.ExceptionType(typ.Value.AsString()), semconv.ExceptionMessage(text)))
	span.SetStatus(codes.Error, text)
}
