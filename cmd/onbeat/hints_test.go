package main

import (
	"net"
	"strings"
	"testing"
)

func TestEnqueue_saysThatAKeyIsReserved(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.fails(2, []string{"enqueue", "echo", "--key", "schedule:x"},
		`key "schedule:x": keys that begin with schedule: are reserved (begin it with something else)`)
}

func TestCommands_sayWhatToDoAboutAKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	if err := s.rdb.Set(t.Context(), "onbeat:{"+s.ns+"}:events", "x", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.fails(1, []string{"events"}, `("onbeat doctor" names the key; a running leader sets it aside within 30 s)`)
}

func TestConnect_asksWhetherThePortSpeaksTLS(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	const hint = "(does this port speak TLS? use rediss:// if it does, redis:// if not)"
	hangsUp, mute := s.listen(true), s.listen(false)
	s.fails(1, []string{"instances", "--redis", "redis://" + hangsUp}, "EOF "+hint)
	s.fails(1, []string{"instances", "--redis", "rediss://" + hangsUp}, "EOF "+hint)
	s.fails(1, []string{"instances", "--redis", "rediss://" + mute}, "unreachable", hint)
}

// listen accepts connections. It hangs up after the first bytes, or never answers.
func (s *shell) listen(hangUp bool) (addr string) {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.Cleanup(func() { _ = conn.Close() })
			if hangUp {
				go func() {
					for n, _ := conn.Read(make([]byte, 64<<10)); n == 64<<10; {
						n, _ = conn.Read(make([]byte, 64<<10))
					}
					_ = conn.Close()
				}()
			}
		}
	}()
	return l.Addr().String()
}

func TestConfig_namesTheFieldOfAFileWithoutTLS(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	file := s.file("c.yaml", "redis: {url: 'redis://h', tls_ca: ca.pem}\nnamespace: x\n")
	s.fails(2, []string{"instances", "-c", file}, `c.yaml:1: redis.tls_ca "ca.pem": redis.url does not use TLS (begin redis.url with rediss)`)
	if r := s.run("", "instances", "-c", file); strings.Contains(r.err, "redis://h") {
		t.Errorf("shows a URL: %s", r.err)
	}
}
