package handlers

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/internal/sign"
	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/task"
)

// The headers of every request, as the receiver of a task sees them. They are in canonical form here, because the header is
// filled without http.Header.Set.
const (
	headerPrefix      = "Onbeat-"
	headerTaskID      = "Onbeat-Task-Id"
	headerSchedule    = "Onbeat-Schedule"
	headerSlot        = "Onbeat-Slot"
	headerAttempt     = "Onbeat-Attempt"
	headerInstance    = "Onbeat-Instance"
	headerRelease     = "Onbeat-Release"
	headerFence       = "Onbeat-Fence"
	headerTraceparent = "Traceparent"
	headerTracestate  = "Tracestate"
	headerUserAgent   = "User-Agent"
	headerIdempotency = "Idempotency-Key"
)

const ownHeaders = 14

// headerFor returns the header of one run: the headers of the payload, then ours.
func (c *httpCall) headerFor(ctx context.Context, t *task.Task) http.Header {
	h := make(http.Header, len(c.header)+ownHeaders)
	for k, v := range c.header {
		h[k] = v[:1:1] // shared; no code writes to it
	}
	values := make([]string, 0, ownHeaders)
	set := func(key, value string) {
		if value == "" {
			return
		}
		values = append(values, value)
		n := len(values)
		h[key] = values[n-1 : n : n]
	}
	set(headerTaskID, headerText(t.ID))
	set(headerSchedule, headerText(t.Schedule))
	if at := slotOf(t); !at.IsZero() {
		set(headerSlot, formatSlot(at))
	}
	set(headerAttempt, strconv.Itoa(t.Attempt))
	set(headerInstance, headerText(t.Instance))
	set(headerRelease, headerText(t.Release))
	set(headerFence, strconv.FormatInt(t.Fence, 10))
	if len(c.key) > 0 {
		id, now := headerText(t.ID), strconv.FormatInt(time.Now().Unix(), 10)
		set(sign.HeaderID, id)
		set(sign.HeaderTimestamp, now)
		set(sign.HeaderSignature, sign.Of(c.key, id, now, c.body))
	}
	sc := traceOf(ctx, t)
	set(headerTraceparent, tracing.Traceparent(sc))
	if c.header[headerTracestate] == nil {
		set(headerTracestate, tracing.State(sc))
	}
	if c.header[headerUserAgent] == nil {
		set(headerUserAgent, userAgent(t.Release))
	}
	if c.header[headerIdempotency] == nil && c.repeatable(t) {
		h[headerIdempotency] = nil // sends no header, but allows net/http to send the request again on a fresh connection
	}
	return h
}

func userAgent(release string) string {
	if release == "" {
		return "onbeat"
	}
	return "onbeat/" + headerText(release)
}

// headerText drops characters that the value of a header may not have. IDs and releases were checked when they came in, so
// they pass unchanged.
func headerText(s string) string {
	bad := func(r rune) bool { return r < ' ' || r == 0x7f }
	if !strings.ContainsFunc(s, bad) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return -1
		}
		return r
	}, s)
}

// traceOf returns the trace context that a receiver gets. If ctx has a span of the task's trace, or the task is of no trace, it is
// that span: with traces on, the span of the run. Else it is a child of the task's trace, or else a fresh, sampled one. A slot is of
// no trace: its Trace is a span that its run has a link to.
//
// traceOf passes on the span in ctx under the span's own ID, because no span is recorded here that could stand between.
func traceOf(ctx context.Context, t *task.Task) trace.SpanContext {
	span := trace.SpanContextFromContext(ctx)
	parent, ok := tracing.Parse(t.Trace, t.TraceState)
	ok = ok && t.Schedule == ""
	switch {
	case span.IsValid() && (!ok || span.TraceID() == parent.TraceID()):
		return span
	case ok:
		return parent.WithSpanID(newSpanID())
	}
	var fresh trace.TraceID
	for !fresh.IsValid() {
		binary.NativeEndian.PutUint64(fresh[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(fresh[8:], rand.Uint64())
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: fresh, SpanID: newSpanID(), TraceFlags: trace.FlagsSampled})
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}
