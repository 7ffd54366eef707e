//go:build unix

package api

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// knock opens a connection, asks for the stream of events, and returns the head of the answer. The connection stays open.
func knock(t *testing.T, addr, token string) (net.Conn, string, error) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 20*time.Second)
	if err != nil {
		return nil, "", err
	}
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, err = io.WriteString(conn, "GET /v1/events HTTP/1.1\r\nHost: "+addr+"\r\nAccept: text/event-stream\r\nAuthorization: Bearer "+token+"\r\n\r\n")
	var head []byte
	for part := make([]byte, 512); err == nil && !bytes.Contains(head, []byte("\r\n\r\n")); {
		var n int
		n, err = conn.Read(part)
		head = append(head, part[:n]...)
	}
	if bytes.Contains(head, []byte("\r\n\r\n")) {
		err = nil
	}
	return conn, string(head), err
}

// inUse returns the bytes that this process has in use, of clients and server alike.
func inUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// Of two thousand streams of one sender that stay open, as many are served as there is room for. Each other stream gets an answer
// that says when to come back, other senders are served all the while, and memory stays small.
func TestServe_refusesTooManyStreamsPolitely(t *testing.T) {
	const wanted = 2_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	streams := wanted
	if spare := int64(min(uint64(files.Cur), 1<<20)) - mostHeld - mostStrangers - 200; spare < wanted {
		streams = int(max(spare, 0))
		t.Logf("%d files may be open here, so there are %d streams and not %d", files.Cur, streams, wanted)
	}
	if streams < mostListeners {
		t.Skip("too few files may be open")
	}
	s := serve(t, Config{Tokens: threeTokens})
	addr, _ := serving(t, s.Server)
	before := inUse()

	var mu sync.Mutex
	open, answers := []net.Conn{}, map[string]int{}
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range streams/50 + min(1, max(0, streams%50-i)) {
				conn, head, err := knock(t, addr, viewer)
				mu.Lock()
				if conn != nil {
					open = append(open, conn)
				}
				status, _, _ := strings.Cut(head, "\r\n")
				if err == nil && !strings.Contains(status, " 200 ") && !strings.Contains(head, "\r\nRetry-After: ") {
					err = fmt.Errorf("no word on when to come back: %s", head)
				}
				if err != nil {
					t.Error(err)
				}
				answers[status]++
				mu.Unlock()
			}
		})
	}
	flooded := make(chan struct{})
	go func() { wg.Wait(); close(flooded) }()
	worst, asked := time.Duration(0), 0
	for more := true; more; asked++ {
		select {
		case <-flooded:
			more = false
		case <-time.After(20 * time.Millisecond):
		}
		began := time.Now()
		if code := countsOf(t, addr); code != http.StatusOK {
			t.Fatalf("another sender: %d", code)
		}
		worst = max(worst, time.Since(began))
	}
	grown := int64(inUse()) - int64(before)
	t.Logf("%d streams: %v; %d MiB more in use; %d requests of another sender, the slowest %v", streams, answers, grown>>20, asked, worst)
	if n := answers["HTTP/1.1 200 OK"]; n != mostListeners/2 {
		t.Errorf("%d streams are served, want %d", n, mostListeners/2)
	}
	if n := answers["HTTP/1.1 200 OK"] + answers["HTTP/1.1 503 Service Unavailable"] + answers["HTTP/1.1 429 Too Many Requests"]; n != streams {
		t.Errorf("%d streams are answered, want %d", n, streams)
	}
	if grown > 128<<20 {
		t.Errorf("%d MiB more are in use", grown>>20)
	}
}

// countsOf asks for the counts by a connection of its own.
func countsOf(t *testing.T, addr string) int {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/counts", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+operator)
	transport := &http.Transport{DisableKeepAlives: true, ResponseHeaderTimeout: 20 * time.Second}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// A sender that has its share of the connections is answered on more of them, and each of these ends with its answer.
func TestServe_aSenderKeepsItsShareOfTheConnections(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || uint64(files.Cur) < 3*mostHeld {
		t.Skip("too few files may be open")
	}
	s := serve(t, Config{Tokens: threeTokens})
	addr, _ := serving(t, s.Server)
	kept := 0
	for range mostHeld/2 + 100 {
		conn := send(t, addr, "GET /v1/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+viewer+"\r\n\r\n")
		resp := make([]byte, 2048)
		n, err := conn.Read(resp)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(resp[:n], []byte("\r\nConnection: close\r\n")) {
			kept++
		}
	}
	if kept != mostHeld/2 {
		t.Errorf("%d connections are kept, want %d", kept, mostHeld/2)
	}
}
