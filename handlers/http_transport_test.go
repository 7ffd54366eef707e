package handlers_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/task"
)

// watched is a server that counts its connections by their state, and its requests.
type watched struct {
	*httptest.Server
	requests    atomic.Int64
	made, ended atomic.Int64
}

func watch(t testing.TB, idle time.Duration) *watched {
	t.Helper()
	w := &watched{}
	w.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { w.requests.Add(1) }))
	w.Config.IdleTimeout = idle
	w.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			w.made.Add(1)
		case http.StateClosed:
			w.ended.Add(1)
		}
	}
	w.Start()
	t.Cleanup(w.Close)
	return w
}

func run(t testing.TB, h handlers.TaskHandler, attempts int, payload []byte) {
	t.Helper()
	if err := h.Handle(t.Context(), &task.Task{ID: "id", MaxAttempts: attempts, Payload: payload}); err != nil {
		t.Error(err)
	}
}

func TestHTTP_closesIdleConnections(t *testing.T) {
	t.Parallel()
	s := watch(t, 0)
	run(t, newHTTP(t, handlers.HTTPConfig{IdleTimeout: 20 * time.Millisecond}), 0, payload("url", s.URL))
	testredis.Eventually(t, 30*time.Second, func() bool { return s.ended.Load() == 1 }, "the idle connection stays open")
}

// A request that may be sent only once does not go over a connection that was idle for long, which the server may be closing.
func TestHTTP_sendsWhatMayBeSentOnceOverFreshConnections(t *testing.T) {
	t.Parallel()
	s, h := watch(t, 0), newHTTP(t, handlers.HTTPConfig{})
	run(t, h, 10, payload("url", s.URL)) // its connection is kept
	for range 3 {
		run(t, h, 1, payload("url", s.URL)) // these share one, as they follow one another
	}
	made := s.made.Load() // two, on a machine that is not busy
	testredis.Eventually(t, 30*time.Second, func() bool { return s.ended.Load() == made-1 }, "the idle connection of a POST that has one attempt stays open")
	run(t, h, 1, payload("url", s.URL, "method", "GET")) // may be sent again, as any GET
	run(t, h, 1, payload("url", s.URL, "headers", map[string]string{"Idempotency-Key": "x"}))
	run(t, h, 10, payload("url", s.URL))
	if now := s.made.Load(); made < 2 || now != made {
		t.Errorf("%d connections were made, then %d", made, now)
	}
	run(t, h, 1, payload("url", s.URL))
	if now := s.made.Load(); now != made+1 {
		t.Errorf("%d connections were made, then %d", made, now)
	}
}

// A server that closes idle connections just as requests come fails no run, and gets each request once.
func TestHTTP_losesNoRequestToAServerThatClosesIdleConnections(t *testing.T) {
	t.Parallel()
	const idle, runs = 4 * time.Millisecond, 150
	s, h := watch(t, idle), newHTTP(t, handlers.HTTPConfig{})
	body := strings.Repeat("x", 3000)
	for i := range runs {
		run(t, h, 0, payload("url", s.URL, "body", body))
		time.Sleep(idle/2 + idle*time.Duration(i)/runs) // from half to one and a half of what the server waits
	}
	if n := s.requests.Load(); n != runs {
		t.Errorf("%d requests came of %d runs", n, runs)
	}
	if s.made.Load() < 2 {
		t.Error("the server closed no connection: this test shows nothing")
	}
}

// After a burst the next one finds its connections: as many are kept as there were requests.
func TestHTTP_keepsTheConnectionsOfABurst(t *testing.T) {
	t.Parallel()
	s, h := watch(t, 0), newHTTP(t, handlers.HTTPConfig{})
	const many = 50
	burst := func() {
		var wg sync.WaitGroup
		for range many {
			wg.Go(func() { run(t, h, 0, payload("url", s.URL)) })
		}
		wg.Wait()
	}
	burst()
	testredis.Eventually(t, 30*time.Second, func() bool { n := s.made.Load(); burst(); return s.made.Load() == n && n <= 2*many },
		"each burst makes connections anew")
	if n := s.ended.Load(); n != 0 {
		t.Errorf("%d connections were closed", n)
	}
}
