package main

import (
	"cmp"
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/cmd/onbeat/internal/otlp"
	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// flushTime is how long the spans that are left may take at shutdown.
const flushTime = 5 * time.Second

// traces is the tracer provider that the OTEL_ variables of the environment ask for.
type traces struct {
	trace.TracerProvider // nil if they ask for none
	stop                 func(context.Context) error
}

// newTraces makes the tracer provider. The SDK reads its variables itself; those that are read here say whether there are traces.
func (a *app) newTraces(ctx context.Context, log zerolog.Logger) (traces, error) {
	if !a.wantsTraces(log) {
		return traces{}, nil
	}
	otel.SetLogger(logr.Discard()) // else the SDK writes lines of its own to stderr
	otel.SetErrorHandler(&exportErrors{log: log})
	client, err := otlp.New(a.env)
	if err != nil {
		return traces{}, &failure{err, "see the OTEL_EXPORTER_OTLP_ variables, or set OTEL_TRACES_EXPORTER=none"}
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return traces{}, err
	}
	source, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		semconv.ServiceName("onbeat"), semconv.ServiceVersion(buildVersion()), semconv.ServiceInstanceID(uuid.NewString()),
	), resource.WithFromEnv())
	if err != nil { // it leaves out the part that it could not read
		log.Warn().Err(err).Msg("OTEL_RESOURCE_ATTRIBUTES cannot be read in full")
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(source))
	return traces{p, p.Shutdown}, nil
}

// wantsTraces reports whether the environment asks for traces: by the name of the exporter, or by an endpoint to send them to.
func (a *app) wantsTraces(log zerolog.Logger) bool {
	if strings.EqualFold(a.env("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	switch name := a.env("OTEL_TRACES_EXPORTER"); name {
	case "otlp":
	case "":
		if a.env("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && a.env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
			return false
		}
	case "none":
		return false
	default:
		log.Warn().Str("exporter", wording.Cut(name, 60)).Msg("OTEL_TRACES_EXPORTER is neither otlp nor none: there are no traces")
		return false
	}
	switch name := cmp.Or(a.env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), a.env("OTEL_EXPORTER_OTLP_PROTOCOL")); name {
	case "", "http/protobuf":
	default:
		log.Warn().Str("protocol", wording.Cut(name, 60)).Msg("the OTLP protocol is http/protobuf alone: sending traces over HTTP, mostly to port 4318")
	}
	return true
}

// flush sends the spans that are left. It returns at the latest after flushTime, or when the user is in a hurry.
func (t traces) flush(hurry <-chan struct{}, log zerolog.Logger) {
	if t.stop == nil {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), flushTime)
	defer done()
	go func() {
		select {
		case <-hurry:
			done()
		case <-ctx.Done():
		}
	}()
	if err := t.stop(ctx); err != nil {
		log.Warn().Str("error", plainError(err)).Msg("could not send the last traces")
	}
}

// quietTime is how long failures to send traces are not logged again.
const quietTime = time.Minute

// exportErrors logs what the SDK reports, at most once in quietTime: with the collector gone, every batch fails.
type exportErrors struct {
	log     zerolog.Logger
	mu      sync.Mutex
	last    time.Time
	between int
}

// Handle implements otel.ErrorHandler.
func (e *exportErrors) Handle(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if now := time.Now(); e.last.IsZero() || now.Sub(e.last) >= quietTime {
		e.log.Warn().Str("error", plainError(err)).Int("more", e.between).Msg("traces are lost: they cannot be sent")
		e.last, e.between = now, 0
		return
	}
	e.between++
}

// plainError returns the text of an error on one line. It may hold a body that the collector answered.
func plainError(err error) string {
	return wording.Cut(strings.Join(strings.Fields(err.Error()), " "), 300)
}

// carryTrace has tasks carry the trace context of the environment, in which another program may have started this command.
func (a *app) carryTrace(tasks []*task.Task) {
	parent, state := a.env("TRACEPARENT"), a.env("TRACESTATE")
	sc, ok := tracing.Parse(parent, state)
	if !ok {
		return
	}
	for _, t := range tasks {
		t.Trace, t.TraceState = tracing.Traceparent(sc), tracing.State(sc)
	}
}
