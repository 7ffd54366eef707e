package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// served is a server of a handler behind the guard, as [Server.Serve] serves it.
func served(t *testing.T, cfg *Config, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(guard(cfg, h))
	t.Cleanup(s.Close)
	return s.URL
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func TestLimits_ofBodies(t *testing.T) {
	t.Parallel()
	url := served(t, &Config{}, http.HandlerFunc(echo))
	for _, c := range []struct {
		path    string
		size    int
		chunked bool
		want    int
	}{
		{"/v1/schedules", otherBody, false, 200}, {"/v1/schedules", otherBody + 1, false, 413}, {"/v1/schedules", otherBody + 1, true, 413},
		{"/v1/tasks", 5 << 20, true, 200}, {"/v1/tasks", batchBody + 1, false, 413}, {"/v1/tasks", batchBody + 1, true, 413},
		{"/v1/tasks/", otherBody + 1, false, 413}, {"/v1/tasks", 0, false, 200},
	} {
		var body io.Reader = bytes.NewReader(make([]byte, c.size))
		if c.chunked {
			body = io.MultiReader(body) // of unknown length
		}
		resp, err := http.Post(url+c.path, "application/json", body)
		if err != nil {
			if c.want == 413 { // the server hung up before all was sent
				continue
			}
			t.Fatal(err)
		}
		got, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != c.want || c.want == 200 && len(got) != c.size {
			t.Errorf("%+v: %d, %d bytes", c, resp.StatusCode, len(got))
		}
	}
}

func TestLimits_ofRate(t *testing.T) {
	t.Parallel()
	l := newLimits(&Config{})
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	codes := map[int]int{}
	l.senders.of("").pace.SetLimit(1)
	l.senders.of("").pace.SetBurst(100)
	for range 300 {
		w := httptest.NewRecorder()
		l.serve(w, local(http.MethodGet, "/v1/counts"), h)
		codes[w.Code]++
		if w.Code == 429 && w.Header().Get("Retry-After") == "" {
			t.Fatal("no word on when to come back")
		}
	}
	if codes[200] < 100 || codes[429] < 100 {
		t.Errorf("%v", codes)
	}
}

// A sender that guesses tokens or sessions may ask for a page or a session as well as for a call. It takes nothing of those who are let in.
func TestLimits_ofWhoIsNotLetIn(t *testing.T) {
	t.Parallel()
	cfg := &Config{Tokens: threeTokens}
	for _, c := range []struct {
		method, path, header, guess string
		want                        int
	}{
		{http.MethodGet, "/v1/counts", "Authorization", "Bearer a guess", 401},
		{http.MethodGet, "/", "Authorization", "Bearer a guess", 303},
		{http.MethodGet, "/", "Cookie", sessionCookie("", false) + "=9999999999.YQ.AAAA", 303},
		{http.MethodGet, "/session", "Authorization", "Bearer a guess", 405},
		{http.MethodDelete, "/session", "Cookie", sessionCookie("", false) + "=9999999999.YQ.AAAA", 204},
	} {
		l, codes := newLimits(cfg), map[int]int{}
		l.strange.SetLimit(0.001)
		l.strange.SetBurst(10)
		h := newAccess(cfg).guard(l, http.HandlerFunc(echo))
		ask := func(method, path, name, value string) *httptest.ResponseRecorder {
			r, w := local(method, path), httptest.NewRecorder()
			r.Header.Set("Accept", "text/html")
			r.Header.Set(name, value)
			h.ServeHTTP(w, r)
			return w
		}
		for range 20 {
			w := ask(c.method, c.path, c.header, c.guess)
			if codes[w.Code]++; w.Code == 429 && w.Header().Get("Connection") != "close" {
				t.Fatal("it may go on on its connection")
			}
		}
		if codes[c.want] != 10 || codes[429] != 10 {
			t.Errorf("%s %s: %v", c.method, c.path, codes)
		}
		if w := ask(http.MethodGet, "/v1/counts", "Authorization", "Bearer "+viewer); w.Code != 200 {
			t.Errorf("who is let in: %d", w.Code)
		}
	}
}

// A sender that is a little too fast is slowed down, not sent away.
func TestLimits_aRequestThatIsALittleEarlyWaits(t *testing.T) {
	t.Parallel()
	l := newLimits(&Config{})
	l.senders.of("").pace.SetLimit(50)
	l.senders.of("").pace.SetBurst(1)
	began := time.Now()
	for range 11 {
		w := httptest.NewRecorder()
		if l.serve(w, local(http.MethodGet, "/v1/counts"), http.HandlerFunc(echo)); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("eleven requests at 50 a second took %v", took)
	}
}

// A body that comes slowly holds no slot, and neither does a reply that is read slowly.
func TestLimits_slowClientsHoldNoSlot(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 4<<20)
	url := served(t, &Config{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(large)
		}
	}))
	addr := strings.TrimPrefix(url, "http://")
	for i := range atOnce + 8 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		text := "POST /v1/tasks HTTP/1.1\r\nHost: " + addr + "\r\nContent-Length: 1000\r\n\r\nslow"
		if i%2 == 0 && i < 60 {
			text = "GET /large HTTP/1.1\r\nHost: " + addr + "\r\n\r\n" // and never reads
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		client := http.Client{Timeout: 30 * time.Second}
		resp, err := client.Get(url + "/v1/counts")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatalf("%d", resp.StatusCode)
		}
	}
}

func TestLimits_workOnSomeAtOnce(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	go1 := make(chan struct{})
	url := served(t, &Config{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-go1
		now.Add(-1)
	}))
	var wg sync.WaitGroup
	for range atOnce + 20 {
		wg.Go(func() {
			resp, err := http.Get(url + "/v1/counts")
			if err == nil {
				_ = resp.Body.Close()
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	close(go1)
	wg.Wait()
	if n := most.Load(); n == 0 || n > atOnce/2 {
		t.Errorf("%d at once", n)
	}
}

func TestLimits_aBugIsAnAnswer(t *testing.T) {
	t.Parallel()
	url := served(t, &Config{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/x")
		w.WriteHeader(201)
		_, _ = w.Write([]byte("half"))
		panic("bug")
	}))
	resp, err := http.Get(url + "/v1/counts")
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != 500 || strings.Contains(string(body), "half") || resp.Header.Get("Location") != "" {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestServe_hangsUpOnSlowHeaders(t *testing.T) {
	t.Parallel()
	s := &Server{handler: http.NotFoundHandler(), stream: newStream(nil)}
	addr, stop := serving(t, s)
	defer stop()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost:"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(3 * headerTime))
	began := time.Now()
	_, err = bufio.NewReader(conn).ReadString('\n')
	if took := time.Since(began); err == nil || took > 2*headerTime {
		t.Errorf("%v after %v", err, took)
	}
}

// A connection is not held by a request that is answered without its body, nor by one whose sender takes no answer.
func TestServe_hangsUpOnWhoIsRefusedAndStays(t *testing.T) {
	t.Parallel()
	const name = "Host: 127.0.0.1\r\n"
	for what, text := range map[string]string{
		"without a token":   "POST /v1/tasks HTTP/1.1\r\n" + name + "Content-Length: 10\r\n\r\n",
		"to a probe":        "GET /healthz HTTP/1.1\r\n" + name + "Content-Length: 10\r\n\r\n",
		"takes no answers":  strings.Repeat("GET /v1/tasks HTTP/1.1\r\n"+name+"\r\n", 100),
		"probes, no answer": strings.Repeat("GET /healthz HTTP/1.1\r\n"+name+"\r\n", 100),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Tokens: func() []Token { return []Token{{Name: "a", Role: Viewer, Secret: "0123456789"}} }}
			addr, stop := serving(t, &Server{handler: guard(&cfg, http.NotFoundHandler()), stream: newStream(nil)})
			defer stop()
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(bodyTime - time.Second)) // a sender that was let in may take longer
			for err == nil && len(text) > 1000 {                         // more and more, until the server hangs up
				_, err = io.WriteString(conn, text)
			}
			if len(text) < 1000 {
				if _, err = io.WriteString(conn, text); err == nil {
					_, err = io.Copy(io.Discard, conn)
				}
			}
			if late := (net.Error)(nil); errors.As(err, &late) && late.Timeout() {
				t.Error("the connection is held")
			}
		})
	}
}

// Nor by a stream whose request has a body that does not come.
func TestServe_aStreamWaitsForItsBodyNoLongerThanOthers(t *testing.T) {
	t.Parallel()
	streamed := make(chan struct{})
	l := newLimits(&Config{})
	r := local(http.MethodGet, "/v1/events")
	r.Header.Set("Accept", "text/event-stream")
	body, end := io.Pipe()
	r.Body, r.ContentLength = body, 10
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.serve(w, r, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(streamed) }))
	}()
	_ = end.CloseWithError(os.ErrDeadlineExceeded)
	<-done
	select {
	case <-streamed:
		t.Error("it streams before its body is there")
	default:
	}
	if w.Code != errSlow.status {
		t.Errorf("%d", w.Code)
	}
}
