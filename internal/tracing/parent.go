package tracing

import (
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/task"
)

// traceparentLength is the length of a traceparent of version 00.
const traceparentLength = len("00-00112233445566778899aabbccddeeff-0011223344556677-01")

// MaxState is the largest tracestate, in bytes, that a task carries. A larger one is left out: it takes memory in Redis, and the
// trace holds together without it.
const MaxState = task.MaxIDLen

// Parse reads a W3C traceparent of version 00, or of a later version that begins the same way. It leaves out an invalid
// tracestate.
func Parse(traceparent, tracestate string) (sc trace.SpanContext, ok bool) {
	s := traceparent
	if len(s) < traceparentLength || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return sc, false
	}
	version, ok := lowerHex(s[:2])
	if !ok || version == 0xff || version == 0 && len(s) != traceparentLength || len(s) > traceparentLength && s[traceparentLength] != '-' {
		return sc, false
	}
	id, err := trace.TraceIDFromHex(s[3:35])
	if err != nil {
		return sc, false
	}
	span, err := trace.SpanIDFromHex(s[36:52])
	if err != nil {
		return sc, false
	}
	flags, ok := lowerHex(s[53:55])
	if !ok {
		return sc, false
	}
	state, _ := trace.ParseTraceState(tracestate) // empty if it is invalid
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags), TraceState: state, Remote: true,
	}), true
}

func lowerHex(s string) (byte, bool) {
	var b [1]byte
	_, err := hex.Decode(b[:], []byte(s))
	return b[0], err == nil && s == strings.ToLower(s)
}

// Traceparent writes a valid span context as a traceparent of version 00, with only the flags that this version has. It returns ""
// for an invalid one.
func Traceparent(sc trace.SpanContext) string {
	if !sc.IsValid() {
		return ""
	}
	const known = 0x03 // sampled, random
	id, span := sc.TraceID(), sc.SpanID()
	b := make([]byte, 0, traceparentLength)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, id[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, []byte{byte(sc.TraceFlags()) & known})
	return string(b)
}

// State writes the tracestate of a span context, or "" if it is larger than [MaxState].
func State(sc trace.SpanContext) string {
	if s := sc.TraceState().String(); len(s) <= MaxState {
		return s
	}
	return ""
}
