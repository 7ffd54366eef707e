package testredis

import (
	"context"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// Miniredis is a Redis inside the test's process, with a client. SetTime sets its clock, which TIME reports and by which
// keys expire. Without SetTime it follows time.Now, and so follows the bubble of testing/synctest.
type Miniredis struct {
	*miniredis.Miniredis

	// Client is closed when the test ends.
	Client *redis.Client
}

// Mini starts a miniredis for this test alone. It does not touch the network, so it works in a testing/synctest bubble; for
// the same reason it has no Addr. Call Mini inside the bubble. It has fewer commands than Redis and runs scripts more
// slowly: use [Each] for a test that must hold on a real Redis.
func Mini(t testing.TB) *Miniredis {
	t.Helper()
	m := &Miniredis{Miniredis: miniredis.NewMiniRedis()}
	m.ClockTTL(true)
	m.Client = m.Dialed(t)
	t.Cleanup(m.Close) // runs after the cleanups of Dialed, because cleanups run in reverse order
	return m
}

// Dialed returns one more client of this server, closed when the test ends. It stands for another instance of the program,
// with its own connections.
func (m *Miniredis) Dialed(t testing.TB) *redis.Client {
	t.Helper()
	rdb := newClient(&redis.Options{
		Addr: "miniredis",
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			conn, err := m.Dial()
			if err != nil {
				return nil, err
			}
			return newPatientConn(conn), nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// patientConn is a connection whose Write never waits for the other side. A net.Pipe has no buffer: a client that writes a
// long pipeline and a server that answers the first command of it would wait for each other for ever.
type patientConn struct {
	net.Conn

	mu     sync.Mutex
	some   sync.Cond
	queue  []byte
	err    error // the error of an earlier write
	closed bool
	done   chan struct{}
}

func newPatientConn(conn net.Conn) *patientConn {
	c := &patientConn{Conn: conn, done: make(chan struct{})}
	c.some.L = &c.mu
	go c.pump()
	return c
}

func (c *patientConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, os.ErrClosed
	case c.err != nil:
		return 0, c.err
	}
	c.queue = append(c.queue, p...)
	c.some.Signal()
	return len(p), nil
}

// pump copies what was written to the other side.
func (c *patientConn) pump() {
	defer close(c.done)
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.closed {
			c.some.Wait()
		}
		batch := slices.Clone(c.queue)
		c.queue = c.queue[:0]
		closed := c.closed
		c.mu.Unlock()
		if closed {
			return
		}
		if _, err := c.Conn.Write(batch); err != nil {
			c.mu.Lock()
			c.err = err
			c.mu.Unlock()
			return
		}
	}
}

func (c *patientConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.some.Signal()
	c.mu.Unlock()
	err := c.Conn.Close()
	<-c.done
	return err
}

// A write never waits, so a write deadline has no effect.
func (c *patientConn) SetWriteDeadline(time.Time) error     { return nil }
func (c *patientConn) SetDeadline(deadline time.Time) error { return c.SetReadDeadline(deadline) }
