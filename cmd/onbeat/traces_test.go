package main

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/onbeat/onbeat/internal/testredis"
)

// collector takes spans as OTLP over HTTP.
type collector struct {
	*httptest.Server
	mu        sync.Mutex
	resources map[string]string
	spans     map[string]*tracepb.Span // by name
	auth      string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{resources: map[string]string{}, spans: map[string]*tracepb.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if err := c.take(q); err != nil {
			t.Error(err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(q *http.Request) error {
	body := io.Reader(q.Body)
	if q.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return err
		}
		body = z
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	if q.URL.Path != "/v1/traces" || q.Header.Get("Content-Type") != "application/x-protobuf" {
		return fmt.Errorf("%s of %s", q.URL.Path, q.Header.Get("Content-Type"))
	}
	var request tracepb.TracesData // the same bytes as an ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &request); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.auth = q.Header.Get("Authorization")
	for _, of := range request.GetResourceSpans() {
		note(c.resources, of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans[s.GetName()] = s
			}
		}
	}
	return nil
}

func note(into map[string]string, list []*commonpb.KeyValue) {
	for _, kv := range list {
		into[kv.GetKey()] = kv.GetValue().GetStringValue()
	}
}

func (c *collector) span(name string) *tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans[name]
}

const traceID, parentID = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

func TestTraces_goToACollector(t *testing.T) {
	t.Parallel()
	s, rec, col := newShell(t), newRecorder(t), newCollector(t)
	p := startProgram(t, t.TempDir(), []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=" + col.URL, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20x", "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test", "OTEL_BSP_SCHEDULE_DELAY=60000", // spans are flushed at the end
	}, "serve", "-c", s.file("onbeat.yaml", configText(s.url, s.ns, rec.URL, "a")))
	p.logs("leads")
	testredis.Eventually(t, patience, func() bool { return rec.count("") > 0 }, "it does not work")
	env := s.env("TRACEPARENT", "00-"+traceID+"-"+parentID+"-01", "TRACESTATE", "vendor=1")
	if r := runWith(t.Context(), env, "", "enqueue", "echo", "--queue", "q", "--id", "x", "--payload", `{"secret":"hush"}`); r.code != 0 {
		t.Fatal(r.err)
	}
	if r := runWith(t.Context(), env, `{"type":"echo","queue":"file"}`, "enqueue", "--file", "-"); r.code != 0 {
		t.Fatal(r.err)
	}
	testredis.Eventually(t, patience, func() bool { return strings.Contains(s.must("tasks", "show", "x"), "done") }, "it does not run")
	testredis.Eventually(t, patience, func() bool { return cells(s.must("tasks", "list", "--queue", "file"), "echo") == nil }, "it does not run")
	p.signal(syscall.SIGTERM)
	if code := p.exit(20 * time.Second); code != 0 {
		t.Errorf("SIGTERM: exit %d", code)
	}

	for _, name := range []string{"wait q", "run q", "run file"} {
		if x := col.span(name); fmt.Sprintf("%x %x %s", x.GetTraceId(), x.GetParentSpanId(), x.GetTraceState()) != traceID+" "+parentID+" vendor=1" {
			t.Errorf("%s: %v", name, x)
		}
	}
	slot := col.span("run default")
	if len(slot.GetParentSpanId()) != 0 || len(slot.GetLinks()) != 1 || col.span("push") == nil {
		t.Errorf("the slot is no root with a link: %v", slot)
	}
	for name, want := range map[string]string{"service.name": "onbeat", "service.version": buildVersion(), "deployment.environment.name": "test"} {
		if got := col.resources[name]; got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if col.resources["service.instance.id"] == "" || col.auth != "Bearer x" {
		t.Errorf("resources %v, authorization %q", col.resources, col.auth)
	}
	if strings.Contains(fmt.Sprint(col.spans), "hush") || strings.Contains(p.errs.String(), "traces") {
		t.Errorf("spans %v, log %s", col.spans, p.errs.String())
	}
}

// A collector that takes connections and never answers is the worst: every send hangs.
func TestTraces_aCollectorThatIsGoneIsInNobodysWay(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(hangs.Close)
	t.Cleanup(func() { close(release) })
	for name, endpoint := range map[string]string{"refuses": "http://127.0.0.1:1", "hangs": hangs.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, rec := newShell(t), newRecorder(t)
			p := startProgram(t, t.TempDir(), []string{
				"OTEL_EXPORTER_OTLP_ENDPOINT=" + endpoint, "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_EXPORTER_OTLP_TIMEOUT=100", "OTEL_BSP_MAX_QUEUE_SIZE=16", "OTEL_BSP_EXPORT_TIMEOUT=300",
			}, "serve", "-c", s.file("onbeat.yaml", configText(s.url, s.ns, rec.URL, "a")))
			const line = `"message":"traces are lost: they cannot be sent"`
			p.logs("traces are lost: they cannot be sent")
			before := rec.count("")
			testredis.Eventually(t, patience, func() bool { return rec.count("") > before+10 }, "it does not work")
			p.signal(syscall.SIGTERM)
			p.logs("deregistered")
			if code := p.exit(flushTime + 10*time.Second); code != 0 {
				t.Errorf("SIGTERM: exit %d", code)
			}
			if n := strings.Count(p.errs.String(), line); n != 1 {
				t.Errorf("logged %d times: %s", n, p.errs.String())
			}
		})
	}
}

func TestTraces_areOffUnlessTheEnvironmentAsksForThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  []string
		want bool
		warn string
	}{
		{nil, false, ""},
		{[]string{"OTEL_SERVICE_NAME", "x"}, false, ""},
		{[]string{"OTEL_TRACES_EXPORTER", "otlp"}, true, ""},
		{[]string{"OTEL_TRACES_EXPORTER", "none", "OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"}, false, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"}, true, ""},
		{[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h"}, true, ""},
		{[]string{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h", "OTEL_SDK_DISABLED", "TRUE"}, false, ""},
		{[]string{"OTEL_TRACES_EXPORTER", "jaeger"}, false, "neither otlp nor none"},
		{[]string{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, true, "over HTTP"},
		{[]string{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"}, true, "over HTTP"},
		{[]string{"OTEL_TRACES_EXPORTER", "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}, true, ""},
	} {
		var log lockedBuffer
		a := newApp(&globals{}, testEnv(c.env...), strings.NewReader(""), io.Discard, io.Discard)
		if got := a.wantsTraces(zerolog.New(&log)); got != c.want || !strings.Contains(log.String(), c.warn) || c.warn == "" && log.String() != "" {
			t.Errorf("%v: %v, log %s", c.env, got, &log)
		}
	}
}

func TestTraces_failuresAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	e := &exportErrors{log: zerolog.New(&log)}
	for range 100 {
		e.Handle(errors.New("two\nlines " + strings.Repeat("x", 1<<16)))
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || len(log.String()) > 1000 || !strings.Contains(log.String(), "two lines") {
		t.Fatalf("%d lines: %.2000s", n, log.String())
	}
	e.last = e.last.Add(-quietTime)
	e.Handle(errors.New("again"))
	if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), `"more":99`) {
		t.Errorf("%d lines: %s", n, &log)
	}
}
