//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/testredis"
)

// heard is what a supervisor heard on its socket.
type heard struct {
	t      *testing.T
	socket string
	lines  lockedBuffer
}

func newHeard(t *testing.T) *heard {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify") // the path of a socket may have 100 bytes only
	if err != nil {
		t.Fatal(err)
	}
	h := &heard{t: t, socket: filepath.Join(dir, "s")}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: h.socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for b := make([]byte, 4096); ; {
			n, err := conn.Read(b)
			if err != nil {
				return
			}
			_, _ = h.lines.Write(append(b[:n:n], '\n'))
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
		_ = os.RemoveAll(dir)
	})
	return h
}

func (h *heard) count(line string) int { return strings.Count("\n"+h.lines.String(), "\n"+line) }

// A systemd hears that the instance is ready once it is, that it lives for as long as it answers, and that it stops.
func TestSupervisor_tellsSystemd(t *testing.T) {
	t.Parallel()
	s, h, dir := newShell(t), newHeard(t), t.TempDir()
	srv := testredis.Private(t)
	conf := put(t, filepath.Join(dir, "onbeat.yaml"), "redis: {url: '"+srv.URL()+"'}\nnamespace: "+s.ns+"\nlease: 500ms\napi: {listen: 127.0.0.1:0}\n")
	srv.Stop()
	p := startProgram(t, dir, []string{"NOTIFY_SOCKET=" + h.socket, "WATCHDOG_USEC=300000"}, "serve", "-c", conf)
	hears := func(what string, n int) {
		t.Helper()
		testredis.Eventually(t, patience, func() bool { return h.count(what) >= n }, "systemd hears %s %d times; it heard\n%s", what, n, &h.lines)
	}
	hears("WATCHDOG=1", 3) // a process that waits for Redis is alive
	if h.count("READY=1") > 0 {
		t.Errorf("it is ready without Redis:\n%s", &h.lines)
	}
	srv.Restart()
	hears("READY=1", 1)
	hears("STATUS=ready", 1)
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testredis.Eventually(t, 10*time.Second, func() bool { // until a datagram that was under way has come
		n := h.count("WATCHDOG=1")
		time.Sleep(time.Second)
		return h.count("WATCHDOG=1") == n
	}, "a process that hangs says that it lives")
	n := h.count("WATCHDOG=1")
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	hears("WATCHDOG=1", n+2)
	p.interrupt()
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d", code)
	}
	hears("STOPPING=1", 1)
	if n := h.count("READY=1"); n != 1 {
		t.Errorf("READY=1 %d times", n)
	}
}

func TestSupervisor_isThereOnlyIfSomebodyListens(t *testing.T) {
	t.Parallel()
	if s := newSupervisor(testEnv(), zerolog.Nop()); s != nil {
		t.Errorf("%+v", s)
	}
	if s := newSupervisor(testEnv("NOTIFY_SOCKET", "@x", "WATCHDOG_USEC", "1000000", "WATCHDOG_PID", "1"), zerolog.Nop()); s == nil || s.watchdog != 0 {
		t.Errorf("it answers the watchdog of another process: %+v", s)
	}
}
