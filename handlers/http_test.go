package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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
// hangServer is served until the hanging requests have been let go.
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
		timeout := "20s"
		if name == "slow" {
			timeout = "50ms"
		}
		err := ask(t, h, "url", "http://user:secret@"+u.Host+"/path?token=secret#secret", "timeout", timeout, "body", "secret",
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
