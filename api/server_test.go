package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/testredis"
)

// service is a server of a namespace of its own.
type service struct {
	*Server
	t     testing.TB
	redis *redis.Client
	ns    string
}

func serve(t testing.TB, cfg Config) *service {
	t.Helper()
	return serveOn(t, testredis.Client(t), cfg)
}

// breakable serves from a Redis that the test may break.
func breakable(t testing.TB, cfg Config) (*service, *testredis.Miniredis) {
	t.Helper()
	m := testredis.Mini(t)
	return serveOn(t, m.Client, cfg), m
}

func serveOn(t testing.TB, rdb *redis.Client, cfg Config) *service {
	t.Helper()
	cfg.Log = zerolog.New(zerolog.NewTestWriter(t))
	return newService(t, rdb, cfg)
}

func newService(t testing.TB, rdb *redis.Client, cfg Config) *service {
	t.Helper()
	ns := testredis.Namespace(t)
	d, err := onbeat.New(rdb, onbeat.Config{Namespace: ns})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(d.Admin(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &service{s, t, rdb, ns}
}

// key is a key of the namespace.
func (s *service) key(name string) string { return "onbeat:{" + s.ns + "}:" + name }

// forgets makes Redis lose the answers that it keeps.
func (s *service) forgets() { s.redis.Del(s.t.Context(), s.key("answers"), s.key("answered")) }

// call sends a request, and returns the status, the headers and the body. Every reply must be what the document says.
func (s *service) call(method, path, body string, headers ...string) (int, http.Header, string) {
	s.t.Helper()
	var in io.Reader = http.NoBody
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, in)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	text := w.Body.String()
	if op := s.operationAt(r); op != nil && method != http.MethodHead {
		if err := s.conforms(op, w.Code, w.Header().Get("Content-Type"), text); err != nil {
			s.t.Errorf("%s %s %s: %d: %v\n%s", method, path, body, w.Code, err, text)
		}
	}
	return w.Code, w.Header(), strings.TrimSpace(text)
}

// operationAt returns the operation of the document that answers a request, or nil.
func (s *service) operationAt(r *http.Request) *huma.Operation {
	if at := r.URL.EscapedPath(); path.Clean(at) != at {
		return nil // which the mux would send elsewhere
	}
	_, pattern := s.mux.Handler(r)
	_, at, _ := strings.Cut(pattern, " ")
	item := s.huma.OpenAPI().Paths[at]
	if item == nil {
		return nil
	}
	return map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete}[r.Method]
}

// conforms checks a reply against the document.
func (s *service) conforms(op *huma.Operation, status int, contentType, body string) error {
	said := op.Responses[fmt.Sprint(status)]
	if said == nil {
		return fmt.Errorf("the status is not in the document")
	}
	media := said.Content[contentType]
	if media == nil {
		return fmt.Errorf("the content type %q is not in the document", contentType)
	}
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		return err
	}
	got := &huma.ValidateResult{}
	huma.Validate(s.huma.OpenAPI().Components.Schemas, media.Schema, huma.NewPathBuffer(nil, 0), huma.ModeReadFromServer, v, got)
	if len(got.Errors) > 0 {
		return fmt.Errorf("%v", got.Errors)
	}
	return nil
}

// problem sends a request that is refused.
func (s *service) problem(method, path, body string, headers ...string) Problem {
	s.t.Helper()
	status, header, text := s.call(method, path, body, headers...)
	var p Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil || header.Get("Content-Type") != problemJSON || p.Status != status || p.Detail == "" {
		s.t.Errorf("%s %s: %d %v: %v: %s", method, path, status, header, err, text)
	}
	return p
}

// exchange is a request and the status of its answer.
type exchange struct {
	method, path, body string
	want               int
}

const hourly = `{"name":"a/b","every":"1h","task":"echo"}`

// story goes through every operation, in an order in which each succeeds.
var story = []exchange{
	{"POST", "/v1/schedules?dry_run=true", hourly, 200},
	{"POST", "/v1/schedules", hourly, 201},
	{"POST", "/v1/schedules", hourly, 409},
	{"GET", "/v1/schedules", "", 200},
	{"GET", "/v1/schedules?limit=1&after=a", "", 200},
	{"GET", "/v1/schedules/a%2Fb", "", 200},
	{"PUT", "/v1/schedules/a%2Fb", `{"cron":"0 2 * * *","timezone":"Asia/Seoul","task":"echo","dst":{"gap":"skip"},"payload":{"x":[1,null]}}`, 200},
	{"PUT", "/v1/schedules/a%2Fb?dry_run=true", hourly, 200},
	{"GET", "/v1/schedules/a%2Fb/revisions", "", 200},
	{"POST", "/v1/schedules/a%2Fb/pause", "", 200},
	{"POST", "/v1/schedules/a%2Fb/pause", "{}", 200},
	{"POST", "/v1/schedules/a%2Fb/resume", "", 200},
	{"POST", "/v1/schedules/a%2Fb/trigger", `{"payload":{"n":1}}`, 201},
	{"POST", "/v1/schedules/a%2Fb/trigger", "", 201},
	{"POST", "/v1/schedules/a%2Fb/backfill", `{"from":"3h","dry_run":true}`, 200},
	{"POST", "/v1/schedules/a%2Fb/backfill", `{"from":"3h"}`, 200},
	{"GET", "/v1/schedules/a%2Fb/slots?count=3&from=2030-01-01", "", 200},
	{"GET", "/v1/schedules/a%2Fb/runs?limit=5", "", 200},
	{"GET", "/v1/runs", "", 200},
	{"DELETE", "/v1/schedules/a%2Fb", "", 200},
	{"GET", "/v1/schedules?deleted=true", "", 200},
	{"POST", "/v1/schedules/a%2Fb/restore", "", 200},
	{"POST", "/v1/tasks", `{"type":"echo","id":"x/1","in":"1h","payload":{"a":"<&>"}}`, 201},
	{"POST", "/v1/tasks", `{"type":"echo","id":"x/1"}`, 409},
	{"POST", "/v1/tasks", `{"tasks":[{"type":"echo","id":"x/1"},{"type":"echo","id":"x/2","at":"2030-01-31T09:00:00Z"}]}`, 200},
	{"GET", "/v1/tasks?state=planned&type=echo&limit=2", "", 200},
	{"GET", "/v1/tasks/x%2F1", "", 200},
	{"POST", "/v1/tasks/x%2F1/cancel", "", 200},
	{"DELETE", "/v1/tasks/x%2F2", "", 200},
	{"POST", "/v1/tasks/bulk", `{"action":"cancel","filter":{"type":"echo"},"dry_run":true}`, 200},
	{"POST", "/v1/tasks/bulk", `{"action":"delete","filter":{"state":"done"}}`, 200},
	{"POST", "/v1/bulk", `{"action":"retry","filter":{"type":"echo"}}`, 202},
	{"GET", "/v1/bulk", "", 200},
	{"GET", "/v1/instances", "", 200},
	{"POST", "/v1/instances/pause", `{"for":"1m"}`, 200},
	{"POST", "/v1/instances/resume", "", 200},
	{"GET", "/v1/failures?type=echo&error=*refused", "", 200},
	{"GET", "/v1/me", "", 200},
	{"GET", "/v1/counts", "", 200},
	{"GET", "/v1/status", "", 200},
	{"GET", "/v1/summary", "", 200},
	{"GET", "/v1/summary?since=1h", "", 200},
	{"GET", "/v1/trends", "", 200},
	{"GET", "/v1/trends?since=1d", "", 200},
	{"GET", "/v1/events?limit=3", "", 200},
	{"GET", "/v1/events?after=0&since=1h", "", 200},
	{"GET", "/v1/audit?since=1h&tolerance=2s", "", 200},
	{"GET", "/v1/beat?from=2h&schedule=a/b&schedule=a/b", "", 200},
	{"GET", "/v1/beat?from=7d&step=1h", "", 200},
	{"GET", "/v1/beat?from=7d&step=1s", "", 400},
	{"GET", "/v1/beat?step=often", "", 400},
	{"GET", "/v1/preview?cron=0+2+*+*+*&timezone=Asia/Seoul&count=2&dst_gap=skip", "", 200},
	{"GET", "/v1/preview?every=1h&jitter=1m&name=x&until=2100-01-01", "", 200},
}

// elsewhere are the operations that other tests see succeed, because they need an instance, a run or a revision.
var elsewhere = []string{"revertSchedule", "promoteRelease", "resignInstance", "drainInstance", "retryTask", "getBulk", "stopBulk", "resumeBulk"}

// withoutRedis are requests that are answered without it.
var withoutRedis = []string{"/v1/me", "/v1/beat?step=often"}

func TestRoutes_answerAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	seen := map[string]bool{}
	for _, x := range story {
		status, header, text := s.call(x.method, x.path, x.body)
		if status != x.want {
			t.Errorf("%s %s %s: %d, want %d: %s", x.method, x.path, x.body, status, x.want, text)
		}
		if status == http.StatusCreated && !strings.HasSuffix(x.path, "/trigger") && header.Get("Location") == "" {
			t.Errorf("%s %s: no Location", x.method, x.path)
		}
		if op := s.operationAt(httptest.NewRequestWithContext(t.Context(), x.method, x.path, http.NoBody)); op != nil && status < 300 {
			seen[op.OperationID] = true
		}
	}
	s.operations(func(_, _ string, op *huma.Operation) {
		if !seen[op.OperationID] && !slices.Contains(elsewhere, op.OperationID) {
			t.Errorf("no request of the story is a %s that succeeds", op.OperationID)
		}
	})
}

// operations calls fn with each operation of the document.
func (s *service) operations(fn func(method, path string, op *huma.Operation)) {
	for path, item := range s.huma.OpenAPI().Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete} {
			if op != nil {
				fn(method, path, op)
			}
		}
	}
}

func TestRoutes_sayThatRedisIsAway(t *testing.T) {
	t.Parallel()
	s, redis := breakable(t, Config{})
	for _, x := range []exchange{{"POST", "/v1/schedules", hourly, 201}, {"POST", "/v1/tasks", `{"type":"echo","id":"x/1"}`, 201}} {
		s.call(x.method, x.path, x.body)
	}
	stories := append(slices.Clone(story), exchange{"POST", "/v1/instances/promote", `{"release":"v1"}`, 0},
		exchange{"POST", "/v1/instances/i/resign", "", 0}, exchange{"POST", "/v1/instances/i/drain", "", 0}, exchange{"POST", "/v1/tasks/x/retry", "", 0},
		exchange{"POST", "/v1/schedules/x/revert", `{"revision":1}`, 0})
	away := func(name string, list []exchange) {
		var all sync.WaitGroup
		for _, x := range list {
			if slices.Contains(withoutRedis, x.path) {
				continue
			}
			all.Go(func() {
				status, header, text := s.call(x.method, x.path, x.body)
				if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
					t.Errorf("%s: %s %s: %d %s", name, x.method, x.path, status, text)
				}
			})
		}
		all.Wait()
	}
	redis.SetError("LOADING Redis is loading the dataset in memory")
	away("loading", stories)
	redis.SetError("")
	_ = redis.Client.Close()
	away("closed", stories)
}

func TestRequests_thatAreRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	s.call("POST", "/v1/schedules", hourly)
	s.call("POST", "/v1/tasks", `{"type":"echo","id":"x"}`)
	for _, c := range []struct {
		exchange
		kind  string
		field string // as in p.Errors
	}{
		{exchange{"POST", "/v1/schedules", `{"name":"x","evry":"1h","every":"1x","task":3}`, 400}, "invalid", "evry"},
		{exchange{"POST", "/v1/schedules", `{"name":"x","every":"1h","task":"t","dst":{"gap":1}}`, 400}, "invalid", "dst.gap"},
		{exchange{"POST", "/v1/schedules", `{"name":"x","Every":"1h","task":"t"}`, 400}, "invalid", "Every"},
		{exchange{"POST", "/v1/schedules", `{"name":"x","every":"1h","every":"2h","task":"t"}`, 400}, "invalid", "every"},
		{exchange{"POST", "/v1/schedules", ``, 400}, "invalid", "body"},
		{exchange{"POST", "/v1/schedules", `[]`, 400}, "invalid", "body"},
		{exchange{"POST", "/v1/schedules", hourly + hourly, 400}, "invalid", "body"},
		{exchange{"POST", "/v1/schedules", "{\"name\":\"\xff\"}", 400}, "invalid", "name"},
		{exchange{"PUT", "/v1/schedules/other", hourly, 400}, "invalid", "name"},
		{exchange{"PUT", "/v1/schedules/a%2Fb?dry_run=yes", hourly, 400}, "invalid", "dry_run"},
		{exchange{"GET", "/v1/schedules/nope/runs", "", 404}, "not-found", ""},
		{exchange{"POST", "/v1/schedules/nope/trigger", "", 404}, "not-found", ""},
		{exchange{"POST", "/v1/schedules/nope/restore", "", 404}, "not-found", ""},
		{exchange{"POST", "/v1/schedules/a%2Fb/revert", `{"revision":0}`, 400}, "invalid", "revision"},
		{exchange{"POST", "/v1/schedules/a%2Fb/backfill", `{}`, 400}, "invalid", "from"},
		{exchange{"POST", "/v1/schedules/a%2Fb/pause", `{"for":1}`, 400}, "invalid", "for"},
		{exchange{"GET", "/v1/tasks?stat=dead", "", 400}, "invalid", "stat"},
		{exchange{"GET", "/v1/tasks?state=waiting&state=dead", "", 400}, "invalid", "state"},
		{exchange{"GET", "/v1/tasks?limit=1001", "", 400}, "invalid", "limit"},
		{exchange{"GET", "/v1/tasks?after=zzz", "", 400}, "invalid", "after"},
		{exchange{"GET", "/v1/tasks?a=%zz", "", 400}, "invalid", "query"},
		{exchange{"GET", "/v1/tasks/nope", "", 404}, "not-found", ""},
		{exchange{"POST", "/v1/tasks/x/retry", "", 409}, "state", ""},
		{exchange{"POST", "/v1/tasks", `{"type":"echo","id":"x"}`, 409}, "duplicate", ""},
		{exchange{"POST", "/v1/tasks", `{"type":"echo","priority":5}`, 400}, "invalid", "priority"},
		{exchange{"POST", "/v1/tasks", `{"tasks":[]}`, 400}, "invalid", "tasks"},
		{exchange{"POST", "/v1/tasks", `{"tasks":[{"type":"echo"},{"type":""},7,{"type":"echo","keep":"x"}]}`, 400}, "invalid", "tasks[1].type"},
		{exchange{"POST", "/v1/tasks/bulk", `{"action":"burn","filter":{}}`, 400}, "invalid", "action"},
		{exchange{"POST", "/v1/tasks/bulk", `{"action":"retry","filter":{"stat":"dead"}}`, 400}, "invalid", "filter.stat"},
		{exchange{"POST", "/v1/instances/pause", `{"for":"1d"}`, 400}, "invalid", "for"},
		{exchange{"POST", "/v1/instances/promote", `{"release":"v0"}`, 404}, "not-found", ""},
		{exchange{"POST", "/v1/instances/nope/drain", "", 404}, "not-found", ""},
		{exchange{"GET", "/v1/events?after=18446744073709551615-018446744073709551615", "", 400}, "invalid", "after"},
		{exchange{"GET", "/v1/audit?since=2100-01-01", "", 400}, "invalid", "since"},
		{exchange{"GET", "/v1/preview?cron=x", "", 400}, "invalid", "cron"},
		{exchange{"GET", "/v1/nope", "", 404}, "not-found", ""},
		{exchange{"PATCH", "/v1/tasks", "", 405}, "method-not-allowed", ""},
	} {
		p := s.problem(c.method, c.path, c.body)
		named := c.field == "" && len(p.Errors) == 0
		for _, e := range p.Errors {
			named = named || e.Field == c.field
		}
		if p.Status != c.want || p.Type != problemURN+c.kind || !named {
			t.Errorf("%s %s %s: %+v", c.method, c.path, c.body, p)
		}
	}
}

func TestEnqueue_refusesABatchBeforeItAddsAny(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	p := s.problem("POST", "/v1/tasks", `{"tasks":[{"type":"echo","id":"good"},{"typ":"echo","priority":5},{"type":"echo","in":"zz"}]}`)
	var got []string
	for _, f := range p.Errors {
		got = append(got, f.Field+" "+f.Pointer)
	}
	want := []string{"tasks[1].typ #/tasks/1/typ", "tasks[1].priority #/tasks/1/priority", "tasks[2].in #/tasks/2/in"}
	if !slices.Equal(got, want) || !strings.Contains(p.Detail, "tasks[2].in") {
		t.Errorf("%q: %s", got, p.Detail)
	}
	if status, _, _ := s.call("GET", "/v1/tasks/good", ""); status != http.StatusNotFound {
		t.Errorf("a task of the batch was added: %d", status)
	}
}

func TestReplace_onlyTheRevisionThatIsMeant(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	const path, two = "/v1/schedules/s", `{"every":"2h","task":"echo"}`
	if status, _, text := s.call("PUT", path, two, "If-None-Match", "*"); status != 200 {
		t.Fatal(text)
	}
	_, header, _ := s.call("GET", path, "")
	tag := header.Get("ETag")
	for _, c := range []struct {
		header, value string
		want          int
	}{
		{"If-None-Match", "*", 412}, {"If-None-Match", `"1"`, 400}, {"If-Match", "7", 400}, {"If-Match", `"999"`, 412}, {"If-Match", tag, 200}, {"If-Match", tag, 412},
	} {
		if status, _, text := s.call("PUT", path, strings.Replace(two, "2h", fmt.Sprintf("%dh", 3+len(c.value)), 1), c.header, c.value); status != c.want {
			t.Errorf("%s: %s: %d, want %d: %s", c.header, c.value, status, c.want, text)
		}
	}
}

// Only one content type is taken, because a page elsewhere can have a browser send some others unasked.
func TestBodies_areJSONAndNotTooLarge(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	p := s.problem("POST", "/v1/tasks", `{"type":"echo"}`, "Content-Type", "application/x-www-form-urlencoded")
	if p.Status != http.StatusUnsupportedMediaType || !strings.Contains(p.Detail, "--json") {
		t.Errorf("%+v", p)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/tasks", io.LimitReader(endless{}, batchBody+1))
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5555"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte{' '}, len(b))), nil }

func TestPages_outsideV1(t *testing.T) {
	t.Parallel()
	unready := fmt.Errorf("it drains")
	s := serve(t, Config{Ready: func() error { return unready }, Metrics: http.NotFoundHandler()})
	if p := s.problem("GET", "/readyz", ""); p.Status != 503 || p.Detail != "it drains" {
		t.Errorf("%+v", p)
	}
	unready = nil
	for path, want := range map[string]string{"/healthz": "ok", "/readyz": "ready", "/docs": "<!DOCTYPE html>", "/docs/swagger-ui.css": ".swagger-ui", "/openapi.json": `"openapi":"3.1.0"`} {
		if status, _, text := s.call("GET", path, ""); status != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.100s", path, status, text)
		}
	}
	_, header, text := s.call("GET", "/docs", "")
	if strings.Contains(strings.ReplaceAll(text, `startsWith("http`, ""), "http") || !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the page may ask elsewhere: %v %s", header, text)
	}
	if status, header, _ := s.call("OPTIONS", "/v1/schedules/x", ""); status != 204 || header.Get("Allow") != "DELETE, GET, HEAD, PUT, OPTIONS" {
		t.Errorf("%d %v", status, header)
	}
}
