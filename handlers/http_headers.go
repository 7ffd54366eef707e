package handlers

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/trace"

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
	headerUserAgent   = "User-Agent"
	headerIdempotency = "Idempotency-Key"
)

const ownHeaders = 10

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
	set(headerTraceparent, childTrace(ctx, t.Trace))
	if c.header[headerUserAgent] == nil {
		set(headerUserAgent, userAgent(t.Release))
	}
	if c.header[headerIdempotency] == nil && t.AttemptsAllowed() > 1 {
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

// childTrace returns the traceparent of a request. If ctx has a span of the task's trace, or the task has no trace, it is
// that span. Else it is a child of the task's trace, or else a fresh, sampled one.
//
// It passes on the span in ctx under the span's own ID, because no span is recorded here that could stand between.
func childTrace(ctx context.Context, traceparent string) string {
	span := trace.SpanContextFromContext(ctx)
	id, flags, ok := parseTrace(traceparent)
	switch {
	case span.IsValid() && (!ok || span.TraceID() == id):
		return formatTrace(span.TraceID(), span.SpanID(), span.TraceFlags())
	case ok:
		return formatTrace(id, newSpanID(), flags)
	}
	var fresh trace.TraceID
	for !fresh.IsValid() {
		binary.NativeEndian.PutUint64(fresh[:8], rand.Uint64())
		binary.NativeEndian.PutUint64(fresh[8:], rand.Uint64())
	}
	return formatTrace(fresh, newSpanID(), trace.FlagsSampled)
}

func newSpanID() (id trace.SpanID) {
	for !id.IsValid() {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// parseTrace reads a W3C traceparent of version 00, or of a later version that begins the same way.
func parseTrace(s string) (id trace.TraceID, flags trace.TraceFlags, ok bool) {
	const length = len("00-00112233445566778899aabbccddeeff-0011223344556677-01")
	if len(s) < length || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return id, 0, false
	}
	version, ok := lowerHex(s[:2])
	if !ok || version[0] == 0xff || version[0] == 0 && len(s) != length || len(s) > length && s[length] != '-' {
		return id, 0, false
	}
	id, err := trace.TraceIDFromHex(s[3:35])
	if err != nil {
		return id, 0, false
	}
	if _, err := trace.SpanIDFromHex(s[36:52]); err != nil {
		return id, 0, false
	}
	f, ok := lowerHex(s[53:55])
	if !ok {
		return id, 0, false
	}
	return id, trace.TraceFlags(f[0]), true
}

func lowerHex(s string) (b [1]byte, ok bool) {
	_, err := hex.Decode(b[:], []byte(s))
	return b, err == nil && s == strings.ToLower(s)
}

// formatTrace writes a traceparent of version 00. It passes on only the flags that this version has.
func formatTrace(id trace.TraceID, span trace.SpanID, flags trace.TraceFlags) string {
	const known = 0x03 // sampled, random
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, id[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, span[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, []byte{byte(flags) & known})
	return string(b)
}
