package handlers_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// newHTTP is an http handler that leaves no connection behind.
func newHTTP(t testing.TB, cfg handlers.HTTPConfig) handlers.TaskHandler {
	t.Helper()
	h := handlers.HTTP(cfg)
	t.Cleanup(func() { _ = h.(io.Closer).Close() })
	return h
}

func serve(t testing.TB, fn http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(fn)
	t.Cleanup(s.Close)
	return s
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// payload builds one from pairs.
func payload(pairs ...any) []byte {
	p := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		p[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return b
}

func ask(t testing.TB, h handlers.TaskHandler, pairs ...any) error {
	t.Helper()
	return h.Handle(t.Context(), &task.Task{ID: "id", Type: "http", Payload: payload(pairs...)})
}

func TestHTTP_sendsWhatThePayloadSays(t *testing.T) {
	t.Parallel()
	type seen struct{ method, path, host, contentType, body, accept string }
	var got seen
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = seen{r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("Content-Type"), string(body), r.Header.Get("Accept")}
		w.WriteHeader(http.StatusNoContent)
	})
	host := strings.TrimPrefix(s.URL, "http://")
	h := newHTTP(t, handlers.HTTPConfig{})
	for name, c := range map[string]struct {
		pairs []any
		want  seen
	}{
		"defaults":       {nil, seen{"POST", "/", host, "", "", ""}},
		"a path":         {[]any{"url", s.URL + "/a%2Fb?c=d#e"}, seen{"POST", "/a%2Fb?c=d", host, "", "", ""}},
		"a method":       {[]any{"method", "PURGE"}, seen{"PURGE", "/", host, "", "", ""}},
		"text":           {[]any{"method", "PUT", "body", "a \"b\""}, seen{"PUT", "/", host, "", `a "b"`, ""}},
		"empty text":     {[]any{"body", ""}, seen{"POST", "/", host, "", "", ""}},
		"an object":      {[]any{"body", map[string]int{"a": 1}}, seen{"POST", "/", host, "application/json", `{"a":1}`, ""}},
		"a list":         {[]any{"body", []int{1}}, seen{"POST", "/", host, "application/json", `[1]`, ""}},
		"false":          {[]any{"body", false}, seen{"POST", "/", host, "application/json", `false`, ""}},
		"null":           {[]any{"body", nil}, seen{"POST", "/", host, "", "", ""}},
		"own type":       {[]any{"body", []int{1}, "headers", map[string]string{"content-type": "x/y"}}, seen{"POST", "/", host, "x/y", `[1]`, ""}},
		"a header":       {[]any{"headers", map[string]string{"accept": "z"}}, seen{"POST", "/", host, "", "", "z"}},
		"a host":         {[]any{"headers", map[string]string{"host": "shop.example:80"}}, seen{"POST", "/", "shop.example:80", "", "", ""}},
		"empty settings": {[]any{"method", "", "timeout", "", "expect", []int{}}, seen{"POST", "/", host, "", "", ""}},
	} {
		got = seen{}
		if err := ask(t, h, append([]any{"url", s.URL + "/"}, c.pairs...)...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got != c.want {
			t.Errorf("%s: sent %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestHTTP_statusDecides(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.URL.Path[1:], &code)
		w.WriteHeader(code)
	})
	h := newHTTP(t, handlers.HTTPConfig{})
	for _, c := range []struct {
		code   int
		expect []int
		ok     bool
	}{
		{200, nil, true}, {204, nil, true}, {299, nil, true}, {304, nil, false}, {400, nil, false}, {404, nil, false}, {500, nil, false},
		{200, []int{200, 204}, true}, {201, []int{200, 204}, false}, {404, []int{404}, true}, {200, []int{404}, false}, {503, []int{503}, true},
	} {
		err := ask(t, h, "url", fmt.Sprintf("%s/%d", s.URL, c.code), "expect", c.expect)
		if (err == nil) != c.ok {
			t.Errorf("%d with expect %v: %v", c.code, c.expect, err)
		}
		if se, ok := errors.AsType[*handlers.StatusError](err); !c.ok && (!ok || se.Status != c.code || handlers.IsDead(err)) {
			t.Errorf("%d: %v is no StatusError, or dead", c.code, err)
		}
		if _, ok := handlers.RetryDelay(err); ok {
			t.Errorf("%d: a delay out of nowhere", c.code)
		}
	}
}

func TestHTTP_showsTheStartOfTheBodyOnOneLine(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "  no\r\n\tupstream\x1b[31m \u202e\xff"+strings.Repeat("x", 5000))
	})
	err := ask(t, newHTTP(t, handlers.HTTPConfig{}), "url", s.URL+"/a")
	want := "POST " + s.URL + "/a: 502 Bad Gateway: no upstream [31m \ufffdxxx"
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "x") {
		t.Fatalf("error %q\nwant  %q...", err, want)
	}
	if n := len(err.Error()); n > len(want)+1024 || strings.ContainsAny(err.Error(), "\r\n\x1b") {
		t.Errorf("%d bytes: %q", n, err)
	}
}

func TestHTTP_readsLittleOfAHugeBody(t *testing.T) {
	t.Parallel()
	for _, code := range []int{200, 500} {
		var wrote atomic.Int64
		ended := make(chan struct{})
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			defer close(ended)
			w.WriteHeader(code)
			for chunk := make([]byte, 64<<10); ; {
				n, err := w.Write(chunk)
				wrote.Add(int64(n))
				if err != nil {
					return
				}
			}
		})
		start := time.Now()
		if err := ask(t, newHTTP(t, handlers.HTTPConfig{}), "url", s.URL); (err == nil) != (code == 200) {
			t.Errorf("%d: %v", code, err)
		}
		<-ended // the connection is closed, not drained
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%d: took %s", code, took)
		}
		if wrote.Load() > 64<<20 {
			t.Errorf("%d: the server could write %d bytes", code, wrote.Load())
		}
	}
}

func TestHTTP_usesAConnectionAgain(t *testing.T) {
	t.Parallel()
	var conns atomic.Int32
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(500)
		}
		_, _ = w.Write(make([]byte, 32<<10))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	h := newHTTP(t, handlers.HTTPConfig{})
	for range 5 {
		if err := ask(t, h, "url", s.URL); err != nil {
			t.Error(err)
		}
		if err := ask(t, h, "url", s.URL+"/bad"); err == nil {
			t.Error("no error")
		}
	}
	if n := conns.Load(); n != 1 {
		t.Errorf("10 requests took %d connections", n)
	}
}

// hang answers when the test ends.
func hang(t *testing.T) http.HandlerFunc {
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-end:
		case <-r.Context().Done():
		}
	}
}

// hangServer is served until the hanging requests have been let go.
func hangServer(t *testing.T, before http.HandlerFunc) *httptest.Server {
	t.Helper()
	var s *httptest.Server
	t.Cleanup(func() { s.Close() })
	last := hang(t)
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before != nil {
			before(w, r)
			_ = http.NewResponseController(w).Flush()
		}
		last(w, r)
	}))
	return s
}

func TestHTTP_timesOut(t *testing.T) {
	t.Parallel()
	s := hangServer(t, nil)
	for name, c := range map[string]struct {
		cfg   handlers.HTTPConfig
		pairs []any
	}{
		"of the payload": {handlers.HTTPConfig{}, []any{"url", s.URL, "timeout", "50ms"}},
		"of the config":  {handlers.HTTPConfig{Timeout: 50 * time.Millisecond}, []any{"url", s.URL}},
	} {
		err := ask(t, newHTTP(t, c.cfg), c.pairs...)
		want := "POST " + s.URL + ": no answer within 50ms: context deadline exceeded"
		if !errors.Is(err, context.DeadlineExceeded) || err.Error() != want || handlers.IsDead(err) {
			t.Errorf("%s: %v\nwant %s", name, err, want)
		}
	}
}

func TestHTTP_slowBody(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{200: true, 500: false} { // the status has decided
		s := hangServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "so far")
		})
		start := time.Now()
		err := ask(t, newHTTP(t, handlers.HTTPConfig{}), "url", s.URL, "timeout", "100ms")
		if (err == nil) != want {
			t.Errorf("%d: %v", code, err)
		}
		if err != nil && !strings.HasSuffix(err.Error(), "500 Internal Server Error: so far") {
			t.Errorf("%d: %v", code, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%d: took %s", code, took)
		}
	}
}

func TestHTTP_stopsWithTheCauseOfItsContext(t *testing.T) {
	t.Parallel()
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(lost)
		<-r.Context().Done()
	})
	for _, when := range []string{"during the request", "before it"} {
		err := newHTTP(t, handlers.HTTPConfig{}).Handle(ctx, &task.Task{Payload: payload("url", s.URL)})
		if !errors.Is(err, lost) || err.Error() != "POST "+s.URL+": lease lost" || handlers.IsDead(err) {
			t.Errorf("%s: %v", when, err)
		}
	}
}

func TestHTTP_obeysRetryAfter(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", r.Header.Get("Want"))
		var code int
		_, _ = fmt.Sscan(r.URL.Path[1:], &code)
		w.WriteHeader(code)
	})
	h := newHTTP(t, handlers.HTTPConfig{MaxRetryAfter: time.Minute})
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, c := range []struct {
		code   int
		value  string
		lo, hi time.Duration // zero: no delay
	}{
		{429, "7", 7 * time.Second, 7 * time.Second},
		{503, "7", 7 * time.Second, 7 * time.Second},
		{503, in(20 * time.Second), 15 * time.Second, 20 * time.Second},
		{503, in(-time.Hour), time.Second, time.Second},
		{503, "0", time.Second, time.Second},
		{503, "86400", time.Minute, time.Minute},
		{503, in(24 * time.Hour), time.Minute, time.Minute},
		{503, strings.Repeat("9", 40), time.Minute, time.Minute},
		{429, "", 0, 0},
		{429, "soon", 0, 0},
		{429, "-5", 0, 0},
		{429, "1.5", 0, 0},
		{500, "7", 0, 0},
		{404, "7", 0, 0},
	} {
		err := ask(t, h, "url", fmt.Sprintf("%s/%d", s.URL, c.code), "headers", map[string]string{"Want": c.value})
		if se, ok := errors.AsType[*handlers.StatusError](err); !ok || se.Status != c.code {
			t.Fatalf("%d: %v", c.code, err)
		}
		d, ok := handlers.RetryDelay(err)
		if ok != (c.hi > 0) || d < c.lo || d > c.hi {
			t.Errorf("%d with Retry-After %q: %s, %t; want %s to %s", c.code, c.value, d, ok, c.lo, c.hi)
		}
	}
	if err := ask(t, h, "url", s.URL+"/503", "headers", map[string]string{"Want": "7"}, "expect", []int{503}); err != nil {
		t.Errorf("an expected 503: %v", err)
	}
}

func TestHTTP_hidesSecretsInErrors(t *testing.T) {
	t.Parallel()
	closed := serve(t, nil)
	closed.Close()
	bad := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "http://%zz?token=secret")
		w.WriteHeader(http.StatusFound)
	})
	slow, fails := hangServer(t, nil), serve(t, status(500))
	h := newHTTP(t, handlers.HTTPConfig{})
	for name, s := range map[string]*httptest.Server{"refused": closed, "slow": slow, "status": fails, "location": bad} {
		u, _ := url.Parse(s.URL)
		err := ask(t, h, "url", "http://user:secret@"+u.Host+"/path?token=secret#secret", "timeout", "50ms", "body", "secret",
			"headers", map[string]string{"Authorization": "secret"})
		if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "user") {
			t.Errorf("%s: %v", name, err)
		} else if want := "POST http://" + u.Host + "/path: "; !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v does not begin with %s", name, err, want)
		}
		if name == "refused" {
			if _, ok := errors.AsType[*net.OpError](err); !ok {
				t.Errorf("%v hides its cause", err)
			}
		}
	}
}

func TestHTTP_sendsUserAndPasswordOfTheURL(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if user, pass, ok := r.BasicAuth(); !ok || user != "u" || pass != "p w" {
			w.WriteHeader(401)
		}
	})
	h := newHTTP(t, handlers.HTTPConfig{})
	for range 2 { // the second one from the cache
		if err := ask(t, h, "url", strings.Replace(s.URL, "//", "//u:p%20w@", 1)); err != nil {
			t.Error(err)
		}
	}
}

func TestHTTP_followsRedirects(t *testing.T) {
	t.Parallel()
	type seen struct{ method, body, id, referer, secret string }
	var last seen
	final := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last = seen{r.Method, string(body), r.Header.Get("Onbeat-Task-Id"), r.Header.Get("Referer"), r.Header.Get("X-Secret")}
	}
	other := serve(t, final)
	mux := http.NewServeMux()
	mux.HandleFunc("/final", final)
	mux.HandleFunc("/302", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/final", 302) })
	mux.HandleFunc("/307", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/final", 307) })
	mux.HandleFunc("/other", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, 307) })
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop", 302) })
	mux.HandleFunc("/scheme", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "https://127.0.0.1:1/", 302) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "file:///etc/passwd", 302) })
	mux.HandleFunc("/nowhere", status(302))
	mux.HandleFunc("/hop/{n}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		if n > 0 {
			http.Redirect(w, r, fmt.Sprint("/hop/", n-1), 302)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	h := newHTTP(t, handlers.HTTPConfig{})
	headers := map[string]string{"X-Secret": "s", "Authorization": "a"}
	for path, want := range map[string]seen{
		"/302":   {"GET", "", "id", "", "s"},
		"/307":   {"POST", "b", "id", "", "s"},
		"/other": {"POST", "b", "id", "", ""},
	} {
		last = seen{}
		if err := ask(t, h, "url", s.URL+path+"?token=1", "body", "b", "headers", headers); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if last != want {
			t.Errorf("%s: arrived as %+v, want %+v", path, last, want)
		}
	}
	for path, want := range map[string]string{
		"/loop":    "too many redirects: 5",
		"/hop/6":   "too many redirects: 5",
		"/scheme":  "redirect to another scheme refused: from http to https",
		"/file":    "redirect to another scheme refused: from http to file",
		"/nowhere": "302 Found",
	} {
		if err := ask(t, h, "url", s.URL+path); err == nil || err.Error() != "POST "+s.URL+path+": "+want || handlers.IsDead(err) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	if err := ask(t, h, "url", s.URL+"/hop/5"); err != nil {
		t.Errorf("5 redirects: %v", err)
	}
	if err := ask(t, h, "url", s.URL+"/302", "expect", []int{302}); err != nil {
		t.Errorf("an expected 302: %v", err)
	}
	if err := ask(t, h, "url", s.URL+"/302", "expect", []int{200}); err != nil {
		t.Errorf("an expected 200 behind a 302: %v", err)
	}
	none := newHTTP(t, handlers.HTTPConfig{MaxRedirects: -1})
	if se, ok := errors.AsType[*handlers.StatusError](ask(t, none, "url", s.URL+"/302")); !ok || se.Status != 302 {
		t.Errorf("with no redirects: %v", se)
	}
}

func TestHTTP_neverFallsBackFromHTTPS(t *testing.T) {
	t.Parallel()
	plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("reached over http") })
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ok" {
			return
		}
		http.Redirect(w, r, plain.URL, 307)
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	h := newHTTP(t, handlers.HTTPConfig{TLS: secure.Client().Transport.(*http.Transport).TLSClientConfig})
	if err := ask(t, h, "url", secure.URL+"/ok"); err != nil {
		t.Error(err)
	}
	want := "POST " + secure.URL + ": redirect to another scheme refused: from https to http"
	if err := ask(t, h, "url", secure.URL); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if err := ask(t, newHTTP(t, handlers.HTTPConfig{}), "url", secure.URL+"/ok"); err == nil {
		t.Error("an unknown certificate was taken")
	} else if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Error(err)
	}
}

// A server that closes an idle connection just as the next request arrives costs no attempt.
func TestHTTP_sendsOnceMoreWhenAnOldConnectionIsClosed(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	closing := func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) != 2 {
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close() // not a byte of an answer
		}
	}
	for _, c := range []struct {
		attempts int
		ok       bool
	}{{0, true}, {1, false}} {
		requests.Store(0)
		s, h := serve(t, closing), newHTTP(t, handlers.HTTPConfig{})
		x := &task.Task{MaxAttempts: c.attempts, Payload: payload("url", s.URL, "body", "b")}
		if err := h.Handle(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if err := h.Handle(t.Context(), x); (err == nil) != c.ok {
			t.Errorf("with %d attempts: %v", c.attempts, err)
		}
		if n, want := requests.Load(), map[bool]int32{true: 3, false: 2}[c.ok]; n != want {
			t.Errorf("with %d attempts: %d requests, want %d", c.attempts, n, want)
		}
	}
}

func TestHTTP_isSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Onbeat-Task-Id") != r.Header.Get("Want") {
			w.WriteHeader(500)
		}
	})
	h := newHTTP(t, handlers.HTTPConfig{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				id := fmt.Sprint(w, "-", i%7)
				p := payload("url", s.URL, "headers", map[string]string{"Want": id}, "body", id)
				if err := h.Handle(t.Context(), &task.Task{ID: id, Payload: p}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestHTTP_boundsItsCache(t *testing.T) {
	t.Parallel()
	s, h := serve(t, status(204)), newHTTP(t, handlers.HTTPConfig{})
	for i := range 300 {
		if err := ask(t, h, "url", s.URL, "body", fmt.Sprint(i%290)); err != nil {
			t.Fatal(err)
		}
	}
	if n := handlers.CachedHTTP(h); n != 256 {
		t.Errorf("%d payloads are kept", n)
	}
	fresh := newHTTP(t, handlers.HTTPConfig{})
	if err := ask(t, fresh, "url", s.URL, "body", strings.Repeat("x", 5000)); err != nil {
		t.Error(err)
	}
	if n := handlers.CachedHTTP(fresh); n != 0 {
		t.Error("a long payload is kept")
	}
}

func TestHTTPConfig_Validate(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]handlers.HTTPConfig{
		`timeout "-1s": negative (leave it out for the default)`:         {Timeout: -time.Second},
		`max_retry_after "-1s": negative (leave it out for the default)`: {MaxRetryAfter: -time.Second},
		`idle_per_host "-1": negative (leave it out for the default)`:    {IdlePerHost: -1},
	} {
		if err := cfg.Validate(); err == nil || err.Error() != want {
			t.Errorf("Validate = %v, want %s", err, want)
		}
		if err := ask(t, newHTTP(t, cfg), "url", serve(t, status(200)).URL); err != nil {
			t.Errorf("%s: and yet %v", want, err)
		}
	}
	if err := (handlers.HTTPConfig{MaxRedirects: -1}).Validate(); err != nil {
		t.Error(err)
	}
}

func BenchmarkHTTP(b *testing.B) {
	b.ReportAllocs()
	s := serve(b, status(http.StatusNoContent))
	h := newHTTP(b, handlers.HTTPConfig{})
	x := &task.Task{ID: "warm-cache@1700000000000", Schedule: "warm-cache", Slot: time.UnixMilli(1700000000000), Instance: "0197", Release: "v42",
		Payload: payload("url", s.URL, "headers", map[string]string{"Authorization": "Bearer x"}, "body", map[string]int{"n": 1})}
	for b.Loop() {
		if err := h.Handle(context.Background(), x); err != nil {
			b.Fatal(err)
		}
	}
}
