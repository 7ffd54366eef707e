package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

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
		err := ask(t, newHTTP(t, handlers.HTTPConfig{}), "url", s.URL, "timeout", "2s") // the status has to come within it
		if (err == nil) != want {
			t.Errorf("%d: %v", code, err)
		}
		if err != nil && !strings.HasSuffix(err.Error(), "500 Internal Server Error: so far") {
			t.Errorf("%d: %v", code, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%d: took %s", code, took)
		}
	}
}

// The status has decided: a body that drips holds no worker for the rest of the timeout.
func TestHTTP_drippingBody(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{200: true, 500: false} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, "drip ")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(20 * time.Millisecond)
			}
		})
		start := time.Now()
		err := ask(t, newHTTP(t, handlers.HTTPConfig{}), "url", s.URL, "timeout", "20s")
		if (err == nil) != want {
			t.Errorf("%d: %v", code, err)
		}
		if err != nil && !strings.Contains(err.Error(), "500 Internal Server Error: drip drip") {
			t.Errorf("%d: %v", code, err)
		}
		if took := time.Since(start); took > 20*time.Second {
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

// An answer that switches the connection to another protocol, unasked, counts like any other answer. No context bounds the
// data behind it, so its server could hold the worker.
func TestHTTP_switchingProtocols(t *testing.T) {
	t.Parallel()
	for _, expect := range [][]any{nil, {"expect", []int{101}}} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			t.Cleanup(func() { _ = conn.Close() }) // and it stays open
		})
		start := time.Now()
		err := ask(t, newHTTP(t, handlers.HTTPConfig{}), append([]any{"url", s.URL, "timeout", "20s"}, expect...)...)
		if (err == nil) != (expect != nil) {
			t.Errorf("%v: %v", expect, err)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%v: took %s", expect, took)
		}
	}
}
