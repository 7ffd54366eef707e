package tracing

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/task"
)

// Scope is the name of the instrumentation scope of all spans.
const Scope = "github.com/onbeat/onbeat"

// The attributes that the semantic conventions for messaging do not have.
const (
	Namespace  = attribute.Key("onbeat.namespace")
	Type       = attribute.Key("onbeat.type")
	Schedule   = attribute.Key("onbeat.schedule")
	Slot       = attribute.Key("onbeat.slot") // RFC 3339 in UTC with milliseconds
	Attempt    = attribute.Key("onbeat.attempt")
	Fence      = attribute.Key("onbeat.fence")
	Instance   = attribute.Key("onbeat.instance")
	Release    = attribute.Key("onbeat.release")
	Outcome    = attribute.Key("onbeat.outcome")    // of a run: a word of the history
	Duplicates = attribute.Key("onbeat.duplicates") // of an enqueue: how many tasks exist already
)

// slotTime is RFC 3339 with milliseconds: slots lie on whole ones.
const slotTime = "2006-01-02T15:04:05.000Z07:00"

// Tracer makes the spans of one namespace. A nil Tracer means that traces are off; callers ask before they call.
type Tracer struct {
	tracer    trace.Tracer
	namespace attribute.KeyValue
}

// New returns a tracer, or nil if the provider is nil.
func New(provider trace.TracerProvider, namespace string) *Tracer {
	if provider == nil {
		return nil
	}
	return &Tracer{
		tracer:    provider.Tracer(Scope, trace.WithSchemaURL(semconv.SchemaURL)),
		namespace: Namespace.String(namespace),
	}
}

// start returns the attributes with which a span starts. A sampler sees these; all others are set only on a span that is recorded.
func (t *Tracer) start(operation, queue string, more ...attribute.KeyValue) trace.SpanStartEventOption {
	list := make([]attribute.KeyValue, 0, 4+len(more))
	list = append(append(list, semconv.MessagingSystemKey.String("onbeat"), t.namespace, semconv.MessagingOperationName(operation)), more...)
	if queue != "" {
		list = append(list, semconv.MessagingDestinationName(queue))
	}
	return trace.WithAttributes(list...)
}

// message returns the attributes of one task. Of its payload it tells only the size.
func message(t *task.Task) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 10)
	list = append(list, semconv.MessagingMessageID(t.ID), semconv.MessagingMessageBodySize(len(t.Payload)), Type.String(t.Type))
	if t.Schedule != "" {
		list = append(list, Schedule.String(t.Schedule), Slot.String(t.Slot.UTC().Format(slotTime)))
	}
	return list
}
