package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/testredis"
)

// service is a server on a Redis of its own namespace.
type service struct {
	*Server
	t testing.TB
}

func serve(t testing.TB, cfg Config) *service {
	t.Helper()
	d, err := onbeat.New(testredis.Mini(t).Client, onbeat.Config{Namespace: testredis.Namespace(t)})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Log = zerolog.New(zerolog.NewTestWriter(t))
	s, err := New(d.Admin(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &service{s, t}
}

// call sends a request, and returns the status and the body.
func (s *service) call(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	var in io.Reader = http.NoBody
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, in)
	r.Host = "localhost"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	got := w.Result()
	defer got.Body.Close()
	out, _ := io.ReadAll(got.Body)
	return got, string(bytes.TrimSpace(out))
}

func (s *service) problem(method, path, body string) Problem {
	s.t.Helper()
	got, text := s.call(method, path, body)
	var p Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil || got.Header.Get("Content-Type") != problemJSON || p.Status != got.StatusCode {
		s.t.Errorf("%s %s: %d %s: %v: %s", method, path, got.StatusCode, got.Header.Get("Content-Type"), err, text)
	}
	return p
}

func TestSmoke(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	for _, c := range [][3]string{
		{"GET", "/v1/schedules"}, {"POST", "/v1/schedules", `{"name":"a/b","every":"1h","task":"t"}`}, {"POST", "/v1/schedules", `{"name":"a/b","every":"1h","task":"t"}`},
		{"GET", "/v1/schedules/a%2Fb"}, {"PUT", "/v1/schedules/a%2Fb", `{"every":"2h","task":"t"}`}, {"POST", "/v1/schedules/a%2Fb/pause"}, {"POST", "/v1/schedules/a%2Fb/trigger"},
		{"GET", "/v1/schedules/nope"}, {"POST", "/v1/schedules", `{"name":"x","evry":"1h","every":"1x","task":3}`},
		{"GET", "/v1/schedules/a%2Fb/slots?count=2"}, {"GET", "/v1/schedules/a%2Fb/runs?limit=2"}, {"GET", "/v1/runs"},
		{"POST", "/v1/tasks", `{"type":"echo","id":"a/1","in":"1h"}`}, {"POST", "/v1/tasks", `{"type":"echo","id":"a/1","in":"1h"}`},
		{"POST", "/v1/tasks", `{"tasks":[{"type":"echo"},{"type":"echo","id":"a/1"}]}`}, {"POST", "/v1/tasks", `{"tasks":[{"type":"echo"},{"typ":"echo","priority":3},{"type":"","in":"zz"}]}`},
		{"GET", "/v1/tasks?state=due&limit=2"}, {"GET", "/v1/tasks/a%2F1"}, {"POST", "/v1/tasks/a%2F1/cancel"}, {"POST", "/v1/tasks/a%2F1/retry"}, {"GET", "/v1/tasks?stat=x&limit=x"},
		{"GET", "/v1/tasks?limit=x"}, {"POST", "/v1/tasks/bulk", `{"action":"cancel","filter":{"type":"echo"},"dry_run":true}`},
		{"GET", "/v1/instances"}, {"POST", "/v1/instances/promote", `{"release":"x"}`}, {"POST", "/v1/instances/pause", `{"for":"1m"}`}, {"POST", "/v1/instances/resume"},
		{"GET", "/v1/counts"}, {"GET", "/v1/events?limit=3"}, {"GET", "/v1/audit?since=1h"}, {"GET", "/v1/preview?every=1h&count=2"}, {"GET", "/v1/preview?cron=x"},
		{"GET", "/v1/nope"}, {"PATCH", "/v1/tasks"}, {"OPTIONS", "/v1/tasks"}, {"GET", "/healthz"}, {"GET", "/readyz"}, {"GET", "/docs"}, {"HEAD", "/v1/counts"},
		{"DELETE", "/v1/schedules/a%2Fb"},
	} {
		got, text := s.call(c[0], c[1], c[2])
		if len(text) > 300 {
			text = text[:300]
		}
		t.Log(c[0], c[1], got.StatusCode, got.Header, text)
	}
	_, doc := s.call("GET", "/openapi.json", "")
	t.Log(doc)
}
