package store

import (
	"context"
	"net"
	"syscall"
	"time"
)

// led is a connection to the server that was the primary when it was dialled. It is closed when another server is found to be
// the primary, even while go-redis still sets it up. By itself go-redis closes only the connections that it has by then. A
// server that was frozen may answer on another one later, and is not the primary any more.
type led struct {
	net.Conn
	s    *sentinels
	addr string
}

func (c *led) Close() error {
	c.s.mu.Lock()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	return c.Conn.Close()
}

// ledRaw is a led connection that gives access to its socket, by which a pool finds out whether the connection is dead.
type ledRaw struct {
	*led
	raw syscall.Conn
}

func (c ledRaw) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() }

// lead remembers a connection. It returns false if another server is the primary by now.
func (s *sentinels) lead(conn net.Conn, addr string) (net.Conn, bool) {
	c := &led{Conn: conn, s: s, addr: addr}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr != "" && s.addr != addr {
		return nil, false
	}
	s.conns[c] = struct{}{}
	s.leads++
	s.recheck(0)
	if raw, ok := conn.(syscall.Conn); ok {
		return ledRaw{c, raw}, true
	}
	return c, true
}

// elsewhere forgets the connections to other addresses, and returns them. The caller holds mu.
func (s *sentinels) elsewhere(addr string) (list []net.Conn) {
	for c := range s.conns {
		if c.addr != addr {
			list = append(list, c.Conn)
			delete(s.conns, c)
		}
	}
	return list
}

// lookAfter says when to ask the sentinels again after a connection was made, as long as there is a connection. A primary may
// freeze while a replica is promoted. When it goes on, it still believes that it is the primary, and a client that asked the
// sentinels before may dial it. The sentinels tell the old primary and its clients up to ten seconds later.
var lookAfter = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}

// recheck starts the next of these looks, in place of one that was already set. The caller holds mu.
func (s *sentinels) recheck(n int) {
	if s.timer != nil {
		s.timer.Stop()
	}
	if n < len(lookAfter) {
		leads := s.leads
		s.timer = time.AfterFunc(lookAfter[n], func() { s.lookAgain(n, leads) })
	}
}

func (s *sentinels) lookAgain(n int, leads int64) {
	s.mu.Lock()
	none := len(s.conns) == 0
	s.mu.Unlock()
	if none {
		return
	}
	_, _, _ = s.flight.Do("", func() (any, error) {
		ctx, done := context.WithTimeout(context.Background(), s.timeout)
		defer done()
		return s.find(ctx)
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leads == leads { // else a new connection has started the looks again
		s.recheck(n + 1)
	}
}
