package handlers_test

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	spanID  = "b7ad6b7169203331"
	parent  = "00-" + traceID + "-" + spanID + "-01"
)

// headersOf runs a task and returns what arrived, without what net/http adds on its own.
func headersOf(t *testing.T, ctx context.Context, x *task.Task, pairs ...any) http.Header {
	t.Helper()
	var got http.Header
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Clone() })
	x.Payload = payload(append([]any{"url", s.URL}, pairs...)...)
	if err := newHTTP(t, handlers.HTTPConfig{}).Handle(ctx, x); err != nil {
		t.Fatal(err)
	}
	got.Del("Content-Length")
	return got
}

func TestHTTP_sendsTheHeadersOfTheContract(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 29, 1, 30, 0, 5_000_000, time.FixedZone("", 9*3600))
	got := headersOf(t, t.Context(), &task.Task{ID: "warm@1", Schedule: "warm", Slot: at, Due: at.Add(time.Hour), Attempt: 2, Fence: 1 << 60,
		Instance: "0197-a", Release: "v42"}, "headers", map[string]string{"x-own": "1"})
	for name, want := range map[string]string{
		"Onbeat-Task-Id": "warm@1", "Onbeat-Schedule": "warm", "Onbeat-Slot": "2026-03-28T16:30:00.005000000Z", "Onbeat-Attempt": "2",
		"Onbeat-Instance": "0197-a", "Onbeat-Release": "v42", "Onbeat-Fence": "1152921504606846976", "User-Agent": "onbeat/v42", "X-Own": "1",
	} {
		if v := got[name]; len(v) != 1 || v[0] != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
		delete(got, name)
	}
	if v := got["Traceparent"]; len(v) != 1 || !regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`).MatchString(v[0]) {
		t.Errorf("Traceparent: %q", v)
	}
	delete(got, "Traceparent")
	if len(got) != 0 {
		t.Errorf("and also %v", got)
	}
	slot, err := time.Parse(time.RFC3339Nano, "2026-03-28T16:30:00.005000000Z")
	if err != nil || !slot.Equal(at) {
		t.Errorf("the slot reads as %s, %v", slot, err)
	}
}

func TestHTTP_leavesOutWhatATaskDoesNotHave(t *testing.T) {
	t.Parallel()
	got := headersOf(t, t.Context(), &task.Task{ID: "x", Due: time.UnixMilli(1)})
	want := []string{"Onbeat-Attempt", "Onbeat-Fence", "Onbeat-Slot", "Onbeat-Task-Id", "Traceparent", "User-Agent"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("sent %q, want %q", names, want)
	}
	if got.Get("User-Agent") != "onbeat" || got.Get("Onbeat-Slot") != "1970-01-01T00:00:00.001000000Z" {
		t.Errorf("sent %v", got)
	}
	if got := headersOf(t, t.Context(), &task.Task{ID: "x"}); got.Get("Onbeat-Slot") != "" {
		t.Errorf("a slot out of nowhere: %v", got)
	}
}

func TestHTTP_letsThePayloadChooseItsUserAgentAndKey(t *testing.T) {
	t.Parallel()
	got := headersOf(t, t.Context(), &task.Task{Release: "v1"}, "headers", map[string]string{"user-agent": "me", "Idempotency-Key": "k"})
	if v := got["User-Agent"]; len(v) != 1 || v[0] != "me" {
		t.Errorf("User-Agent: %q", v)
	}
	if v := got["Idempotency-Key"]; len(v) != 1 || v[0] != "k" {
		t.Errorf("Idempotency-Key: %q", v)
	}
}

func TestHTTP_sendsAnIDOfAnyText(t *testing.T) {
	t.Parallel()
	got := headersOf(t, t.Context(), &task.Task{ID: "청구서 42", Release: "v\n1", Instance: "a\x7fb"})
	if got.Get("Onbeat-Task-Id") != "청구서 42" || got.Get("Onbeat-Release") != "v1" || got.Get("User-Agent") != "onbeat/v1" ||
		got.Get("Onbeat-Instance") != "ab" {
		t.Errorf("sent %v", got)
	}
}

func span(t *testing.T, traceID, spanID string, flags trace.TraceFlags) context.Context {
	t.Helper()
	tid, err1 := trace.TraceIDFromHex(traceID)
	sid, err2 := trace.SpanIDFromHex(spanID)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: tid, SpanID: sid, TraceFlags: flags}))
}

func TestHTTP_continuesATrace(t *testing.T) {
	t.Parallel()
	const other, otherSpan = "11111111111111111111111111111111", "2222222222222222"
	for name, c := range map[string]struct {
		ctx   context.Context
		trace string
		want  string
	}{
		"of the span of a slot":    {span(t, other, otherSpan, 1), "slot " + parent, `^00-` + other + `-` + otherSpan + `-01$`},
		"of the task":              {t.Context(), parent, `^00-` + traceID + `-[0-9a-f]{16}-01$`},
		"of the task, not sampled": {t.Context(), parent[:53] + "00", `^00-` + traceID + `-[0-9a-f]{16}-00$`},
		"of a later version":       {t.Context(), "cc" + parent[2:53] + "ff-what-ever", `^00-` + traceID + `-[0-9a-f]{16}-03$`},
		"of the span":              {span(t, other, otherSpan, 0), "", `^00-` + other + `-` + otherSpan + `-00$`},
		"of the span of the task":  {span(t, traceID, otherSpan, 1), parent, `^00-` + traceID + `-` + otherSpan + `-01$`},
		"of the task, not another": {span(t, other, otherSpan, 1), parent, `^00-` + traceID + `-[0-9a-f]{16}-01$`},
		"of the span, for a bad":   {span(t, other, otherSpan, 1), "bad", `^00-` + other + `-` + otherSpan + `-01$`},
	} {
		x := &task.Task{Trace: c.trace}
		if link, ok := strings.CutPrefix(c.trace, "slot "); ok {
			x.Schedule, x.Trace = "s", link
		}
		got := headersOf(t, c.ctx, x).Get("Traceparent")
		if !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: %q, want %s", name, got, c.want)
		}
		if strings.Contains(got, spanID) {
			t.Errorf("%s: %q has the span of the parent", name, got)
		}
	}
}

func TestHTTP_beginsATraceForABadOne(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, bad := range []string{"", "bad", parent[:54], parent + "0", parent + "-00", "ff" + parent[2:], "0x" + parent[2:], strings.ToUpper(parent),
		strings.Replace(parent, traceID, strings.Repeat("0", 32), 1), strings.Replace(parent, spanID, strings.Repeat("0", 16), 1),
		parent[:53] + "0g", parent[:53] + "0A", "cc" + parent[2:] + "x", strings.ReplaceAll(parent, "-", "_")} {
		got := headersOf(t, t.Context(), &task.Task{Trace: bad}).Get("Traceparent")
		if !regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`).MatchString(got) || strings.Contains(got, traceID) || seen[got] {
			t.Errorf("for %q: %q", bad, got)
		}
		seen[got] = true
	}
}
