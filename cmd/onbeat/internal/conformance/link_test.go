package conformance

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// echo is a server that sends back all data that it receives.
func echo(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return ln.Addr().String()
}

// caller is a client that sends one letter at a time.
type caller struct {
	*testing.T
	net.Conn
}

func call(t *testing.T, l *link) caller {
	t.Helper()
	c, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return caller{t, c}
}

func (c caller) say(letter string) {
	c.Helper()
	if _, err := c.Write([]byte(letter)); err != nil {
		c.Fatal(err)
	}
}

// hears reads one letter, or returns the error.
func (c caller) hears(limit time.Duration) (string, error) {
	_ = c.SetReadDeadline(time.Now().Add(limit))
	b := make([]byte, 1)
	_, err := io.ReadFull(c.Conn, b)
	return string(b), err
}

func (c caller) wants(letter string) {
	c.Helper()
	if got, err := c.hears(10 * time.Second); got != letter || err != nil {
		c.Fatalf("heard %q, %v; want %q", got, err, letter)
	}
}

func (c caller) wantsSilence() {
	c.Helper()
	if got, err := c.hears(100 * time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.Fatalf("heard %q, %v; want nothing, on a connection that is open", got, err)
	}
}

func TestLink_keepsConnectionsOpenAndSilentWhileItIsCut(t *testing.T) {
	t.Parallel()
	l, err := newLink(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	old := call(t, l)
	old.say("a")
	old.wants("a")

	l.cut()
	old.say("b")
	old.wantsSilence()
	fresh := call(t, l)
	fresh.say("c")
	fresh.wantsSilence()

	l.mend()
	old.wants("b")
	fresh.wants("c")

	l.cut()
	old.say("d")
	l.close() // cut as it is, it ends
	if _, err := old.hears(10 * time.Second); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a closed link: %v", err)
	}
	testredis.Eventually(t, 30*time.Second, func() bool {
		c, err := net.Dial("tcp", l.addr())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, "a closed link still takes connections")
}

func TestLinkable_takesWhatCanBeLedThroughALink(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][2]string{
		"redis://127.0.0.1:7000/3":          {"127.0.0.1:7000", "redis://LINK/3"},
		"redis://user:p%40ss@host":          {"host:6379", "redis://user:p%40ss@LINK"},
		"redis://[::1]:7000?pool_size=3":    {"[::1]:7000", "redis://LINK?pool_size=3"},
		"rediss://host:6379":                {},
		"redis-sentinel://a:26379/m":        {},
		"redis-cluster://a:6379,b:6379":     {},
		"redis://user:what?ever#@host:6379": {},
	} {
		addr, through, ok := linkable(url)
		if ok != (want[0] != "") {
			t.Errorf("%s: linkable %v", url, ok)
			continue
		}
		if ok && (addr != want[0] || through("LINK") != want[1]) {
			t.Errorf("%s: %s, %s; want %v", url, addr, through("LINK"), want)
		}
	}
}
