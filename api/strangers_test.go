package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// send opens a connection and writes text to it. The connection stays open until the test ends.
func send(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(60 * time.Second))
	_, _ = io.WriteString(conn, text) // the server may have hung up
	return conn
}

// head returns the first line of an answer, or "".
func head(conn net.Conn) string {
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}

// asks sends requests of a token's holder, each by a connection of its own, and returns how often each status came.
func asks(t *testing.T, n int, method, url, token, body string) map[int]int {
	t.Helper()
	codes := map[int]int{}
	for range n {
		r, _ := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: 20 * time.Second}).RoundTrip(r)
		if err != nil {
			codes[0]++
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		codes[resp.StatusCode]++
	}
	return codes
}

// large is a body that takes some of the memory of all.
var large = `{"type":"echo","payload":"` + strings.Repeat("x", 1000_000) + `"}`

// Requests without a token have no body, so slow ones hold nothing that a holder of a token needs.
func TestServe_slowStrangersHoldNothing(t *testing.T) {
	s := serve(t, Config{Tokens: threeTokens})
	addr, _ := serving(t, s.Server)
	if line := head(send(t, addr, "GET /docs HTTP/1.1\r\nHost: x\r\nContent-Length: 2097152\r\n\r\n")); !strings.Contains(line, " 413 ") {
		t.Errorf("a body where none is taken: %q", line)
	}
	var slow []net.Conn
	for i := range 250 {
		sent := 1<<20 + 100
		if i >= 200 { // the rest, in small parts
			sent = 40 << 10
		}
		slow = append(slow, send(t, addr, "GET /docs HTTP/1.1\r\nHost: x\r\nContent-Length: 2097152\r\n\r\n"+strings.Repeat("x", sent)))
	}
	time.Sleep(300 * time.Millisecond) // until the server has read what it reads
	if codes := asks(t, 4, http.MethodPost, "http://"+addr+"/v1/tasks", admins, large); codes[http.StatusCreated] != 4 {
		t.Errorf("a holder of a token: %v", codes)
	}
	for _, conn := range slow {
		_ = conn.Close()
	}
}

// The body of a request for a stream is gone when the stream begins, and one viewer has only a share of the streams.
func TestServe_aViewerLeavesRoomToOthers(t *testing.T) {
	s := serve(t, Config{Tokens: threeTokens})
	addr, _ := serving(t, s.Server)
	kept := strings.Repeat("x", 2<<20-1)
	codes := map[string]int{}
	for i := range mostListeners {
		body := kept
		if i > bufferBytes/2/len(kept)+8 { // that is more than the share of a sender, if they were kept
			body = ""
		}
		conn := send(t, addr, fmt.Sprintf("GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\nContent-Length: %d\r\n\r\n%s", viewer, len(body), body))
		codes[head(conn)]++
	}
	if n := codes["HTTP/1.1 200 OK"]; n != mostListeners/2 {
		t.Errorf("the streams of one viewer: %v", codes)
	}
	if codes := asks(t, 4, http.MethodPost, "http://"+addr+"/v1/tasks", admins, large); codes[http.StatusCreated] != 4 {
		t.Errorf("another holder: %v", codes)
	}
	conn := send(t, addr, "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+operator+"\r\nAccept: text/event-stream\r\n\r\n")
	if line := head(conn); !strings.Contains(line, " 200 ") {
		t.Errorf("the stream of another holder: %q", line)
	}
}

// However many connections strangers open, probes and holders of tokens get in.
func TestServe_strangersFillNoConnectionsOfOthers(t *testing.T) {
	s := serve(t, Config{Tokens: threeTokens, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, "up 1") })})
	addr, _ := serving(t, s.Server)
	var open []net.Conn
	for range 1_300 {
		open = append(open, send(t, addr, "GET /v1/counts HTTP/1.1\r\nHost: x\r\n"))
	}
	for path, token := range map[string]string{"/healthz": "", "/readyz": "", "/metrics": viewer, "/v1/counts": admins} {
		if codes := asks(t, 10, http.MethodGet, "http://"+addr+path, token, ""); codes[http.StatusOK] != 10 {
			t.Errorf("%s: %v", path, codes)
		}
	}
	closed := 0
	for _, conn := range open {
		_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := conn.Read(make([]byte, 1)); err != nil && !strings.Contains(err.Error(), "timeout") {
			closed++
		}
	}
	if closed < 1_000 {
		t.Errorf("of %d connections without a token, %d are closed", len(open), closed)
	}
}
