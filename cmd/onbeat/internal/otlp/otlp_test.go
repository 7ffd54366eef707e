package otlp

import (
	"context"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if "OTEL_EXPORTER_OTLP_"+pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestRead_theEndpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "http://localhost:4318/v1/traces"},
		{[]string{"ENDPOINT", "https://h:1"}, "https://h:1/v1/traces"},
		{[]string{"ENDPOINT", " http://h/base/ "}, "http://h/base/v1/traces"},
		{[]string{"ENDPOINT", "http://user:secret@h?q"}, "http://h/v1/traces"},
		{[]string{"ENDPOINT", "http://h", "TRACES_ENDPOINT", "http://i/as/it/is/"}, "http://i/as/it/is/"},
		{[]string{"TRACES_ENDPOINT", "http://i"}, "http://i/"},
		{[]string{"ENDPOINT", "https://h", "INSECURE", "True"}, "http://h/v1/traces"},
		{[]string{"ENDPOINT", "http://h", "INSECURE", "True", "TRACES_INSECURE", "false"}, "https://h/v1/traces"},
	} {
		s, err := read(env(c.env...))
		if err != nil || s.url != c.want {
			t.Errorf("%v: %q, %v", c.env, s.url, err)
		}
	}
}

func TestRead_theRequest(t *testing.T) {
	t.Parallel()
	s, err := read(env("HEADERS", "a=general", "TRACES_HEADERS", "b=one%20two, c = 3,", "TRACES_COMPRESSION", "gzip", "TIMEOUT", "20"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"A": "", "B": "one two", "C": "3", "Content-Encoding": "gzip", "Content-Type": contentType} {
		if got := s.header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if !s.gzip || s.timeout != 20*time.Millisecond || s.tls != nil {
		t.Errorf("%+v", s)
	}
}

func TestNew_refusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pairs := range [][]string{
		{"ENDPOINT", "localhost:4318"}, {"ENDPOINT", "http://"}, {"TRACES_ENDPOINT", "http://user:secret@h\x7f"},
		{"HEADERS", "secret"}, {"HEADERS", "a b=secret"}, {"HEADERS", "a=secret%0a"}, {"HEADERS", "a=secret%zz"},
		{"TIMEOUT", "10s"}, {"CERTIFICATE", "/nowhere"}, {"CERTIFICATE", empty},
		{"CLIENT_CERTIFICATE", empty, "CLIENT_KEY", empty},
	} {
		_, err := New(env(pairs...))
		if err == nil || !strings.Contains(err.Error(), "OTEL_EXPORTER_OTLP_"+pairs[0]) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", pairs, err)
		}
	}
}

// TLS is by the certificate that the variable names, and by no other.
func TestClient_trustsItsCertificate(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := upload(t, env("ENDPOINT", srv.URL, "CERTIFICATE", file)); err != nil {
		t.Error(err)
	}
	if err := upload(t, env("ENDPOINT", srv.URL)); err == nil {
		t.Error("trusts a certificate that nobody named")
	}
	if _, err := New(env("ENDPOINT", "http://h", "CERTIFICATE", file)); err == nil {
		t.Error("takes certificates for an endpoint without TLS")
	}
}

func TestClient_sendsAgainWhileTheCollectorIsBusy(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, err := io.ReadAll(q.Body)
		var got tracepb.TracesData
		if err != nil || proto.Unmarshal(b, &got) != nil || got.GetResourceSpans()[0].GetSchemaUrl() != "s" {
			t.Errorf("%x, %v", b, err)
		}
		switch calls.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(srv.Close)
	if err := upload(t, env("ENDPOINT", srv.URL)); err != nil || calls.Load() != 3 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}

func TestClient_saysWhySpansAreLost(t *testing.T) {
	t.Parallel()
	// An ExportTraceServiceResponse: of partial_success (1) the rejected spans (1) and the message (2).
	partial := "\x0a\x08" + "\x08\x03" + "\x12\x04full"
	for name, c := range map[string]struct {
		status     int
		kind, body string
		after      string
		want       string
	}{
		"refused":            {http.StatusBadRequest, "text/plain", "bad span\n", "", "400 Bad Request: bad span"},
		"busy for too long":  {http.StatusServiceUnavailable, "text/plain", "", "3600", "503 Service Unavailable: (empty)"},
		"taken in part":      {http.StatusOK, contentType, partial, "", "rejected 3 spans: full"},
		"taken":              {http.StatusOK, contentType, "", "", ""},
		"taken, with a page": {http.StatusAccepted, "text/html", partial, "", ""},
		"broken":             {http.StatusOK, contentType, partial[:5], "", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.Header().Set("Retry-After", c.after)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			t.Cleanup(srv.Close)
			err := upload(t, env("ENDPOINT", srv.URL))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestClient_stopEndsASend(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		close(arrived)
		<-q.Context().Done()
	}))
	t.Cleanup(srv.Close)
	c, err := New(env("ENDPOINT", srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { sent <- c.UploadTraces(context.WithoutCancel(t.Context()), spans()) }()
	<-arrived
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-sent; err == nil {
		t.Error("a send that was stopped says that it arrived")
	}
}

func spans() []*tracepb.ResourceSpans { return []*tracepb.ResourceSpans{{SchemaUrl: "s"}} }

func upload(t *testing.T, env func(string) string) error {
	t.Helper()
	c, err := New(env)
	if err != nil {
		t.Fatal(err)
	}
	c.wait = time.Millisecond
	t.Cleanup(func() { _ = c.Stop(context.Background()) })
	return c.UploadTraces(t.Context(), spans())
}
