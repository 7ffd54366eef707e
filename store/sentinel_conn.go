package store

import (
	"context"
	"net"
	"syscall"
	"time"
)

// led is a connection to what was the primary when it was dialled. It ends when another is found to be that, though it is
// still being set up: go-redis closes those that it has by then, and one on which a server that was frozen answers at last
// would lead to a server that is not the primary any more.
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

// ledRaw is one whose socket can be looked at, by which a pool tells that a connection is dead.
type ledRaw struct {
	*led
	raw syscall.Conn
}

func (c ledRaw) SyscallConn() (syscall.RawConn, error) { return c.raw.SyscallConn() }

// lead keeps a connection in mind. It returns false if another is the primary by now.
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

// elsewhere takes the connections that lead to another address out of those that are kept in mind. It needs mu.
func (s *sentinels) elsewhere(addr string) (list []net.Conn) {
	for c := range s.conns {
		if c.addr != addr {
			list = append(list, c.Conn)
			delete(s.conns, c)
		}
	}
	return list
}

// lookAfter is when the sentinels are asked again after a connection was made, so long as there is one. A primary that was frozen
// while a replica was promoted still takes itself for one when it goes on, and was found by what the sentinels said before;
// they tell it, and who is connected to it, up to ten seconds later.
var lookAfter = []time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 5 * time.Second}

// recheck begins that, anew if it was under way. It needs mu.
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
	if s.leads == leads { // else a new connection has begun it anew
		s.recheck(n + 1)
	}
}
