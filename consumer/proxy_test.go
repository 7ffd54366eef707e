package consumer

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// proxy stands between a client and Redis, and loses replies of cycles that Redis has made.
type proxy struct {
	listener net.Listener
	to       string
	lose     atomic.Int32 // how many replies are to be lost
	lost     atomic.Int32
	hangs    atomic.Pointer[chan struct{}] // no reply passes until it is closed; nil: all pass
	wg       sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

// through returns a client of the server at addr that talks through a proxy.
func through(t *testing.T, addr string) (*redis.Client, *proxy) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	p := &proxy{listener: l, to: addr}
	p.wg.Go(p.accept)
	rdb := redis.NewClient(&redis.Options{
		Addr:                     l.Addr().String(),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		_ = rdb.Close()
		_ = l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return rdb, p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		var cycle atomic.Bool // the last request on this connection was a cycle
		p.wg.Go(func() {
			p.carry(server, client, func(b []byte) bool {
				cycle.Store(bytes.Contains(b, []byte(":running:")) && bytes.Contains(b, []byte(":done")))
				return true
			})
		})
		p.wg.Go(func() {
			p.carry(client, server, func([]byte) bool {
				if c := p.hangs.Load(); c != nil {
					<-*c
				}
				if cycle.Load() && p.lose.Add(-1) >= 0 {
					p.lost.Add(1)
					return false
				}
				return true
			})
		})
	}
}

// carry copies until either side ends, or pass says no.
func (p *proxy) carry(to, from net.Conn, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 256<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !pass(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
