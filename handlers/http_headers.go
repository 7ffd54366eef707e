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

// The headers of every request, as the receiver of a task sees them. They are written in canonical form here, since
// the header is filled without going through http.Header.Set.
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

// header is the header of one run: that of the payload, then ours.
func (c *httpCall) headerFor(ctx context.Context, t *task.Task) http.Header {
	h := make(http.Header, len(c.header)+ownHeaders)
	for k, v := range c.header {
		h[k] = v[:1:1] // shared; nobody writes to it
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
		h[headerIdempotency] = nil // sends nothing; allows net/http to send the request again on a fresh connection
	}
	return h
}

func userAgent(release string) string {
	if release == "" {
		return "onbeat"
	}
	return "onbeat/" + headerText(release)
}

// headerText drops what may not be in the value of a header. An ID or a release that was checked where it came in
// passes as it is.
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

// childTrace is the traceparent of a request: of the span in ctx if there is one and it belongs to the trace of the
// task, or the task has none; else a child of the task's; else a fresh, sampled one.
//
// The span in ctx is passed on under its own ID, as no span is recorded here that could stand between.
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

// parseTrace reads a W3C traceparent, of version 00 or a later one that begins alike.
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

// formatTrace writes a traceparent of version 00. Of the flags, only those that version has are passed on.
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
