package simulation

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
)

// link is the network between one process and Redis. A fault of the link affects all data that is sent from then on.
type link struct {
	redis *virtualRedis

	mu       sync.Mutex
	rng      *rand.Rand
	conns    map[*conn]struct{}
	up, down time.Duration // how long a request and a reply take, at least
	dropUp   bool          // requests never arrive
	dropDown bool          // replies never arrive
	deaf     bool          // messages never arrive
	unheard  bool          // no connection that subscribes stays open
	refuses  bool          // no new connection
	dead     bool          // the process is gone
	frozen   chan struct{} // not nil: nothing goes out or comes in until it is closed
}

func newLink(r *virtualRedis, seed uint64, latency time.Duration) *link {
	return &link{
		redis: r, rng: rand.New(rand.NewPCG(seed, 1)), conns: map[*conn]struct{}{}, up: latency / 2, down: latency / 2,
	}
}

// set changes the link's faults.
func (l *link) set(fn func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn(l)
}

// travel returns how long one way takes this time: the least, and up to as much again.
func (l *link) travel(least time.Duration) time.Duration {
	return least + time.Duration(l.rng.Int64N(int64(least)+1))
}

func (l *link) isUnheard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unheard
}

// breakAll ends every connection, as a kernel does when its process ends or a firewall says no.
func (l *link) breakAll() {
	l.mu.Lock()
	var open []*conn
	for c := range l.conns {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		l.redis.shut(c)
		c.reset()
	}
}

// kill ends the process's side. Data that it sent before may still arrive.
func (l *link) kill() {
	l.set(func(l *link) { l.dead = true })
	l.breakAll()
}

// DialHook, with the two methods below, makes a client connect by the link. Connecting and the greeting take no time:
// go-redis holds a mutex meanwhile, and goroutines that wait for a mutex stop the bubble's clock.
func (l *link) DialHook(redis.DialHook) redis.DialHook {
	return func(context.Context, string, string) (net.Conn, error) {
		l.mu.Lock()
		lost, refuses := l.dropUp || l.dropDown || l.frozen != nil, l.refuses || l.dead
		l.mu.Unlock()
		c := &conn{link: l, some: make(chan struct{}, 1)}
		c.peer = server.NewPeer(bufio.NewWriter(answers{c}))
		switch {
		case lost:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ETIMEDOUT}
		case refuses || !l.redis.open(c):
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		l.set(func(l *link) { l.conns[c] = struct{}{} })
		return c, nil
	}
}

// isGreeting reports whether all of the commands belong to the greeting of a client.
func isGreeting(commands [][]string) bool {
	for _, args := range commands {
		switch strings.ToUpper(args[0]) {
		case "HELLO", "CLIENT", "AUTH", "SELECT", "READONLY":
		default:
			return false
		}
	}
	return true
}

// ProcessHook leaves commands as they are.
func (l *link) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook leaves pipelines as they are.
func (l *link) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// conn is one connection. Its data arrives in order, each way.
type conn struct {
	link       *link
	peer       *server.Peer
	subscribed int
	out        []byte // replies to the commands under way; only the Redis uses it

	mu       sync.Mutex
	instant  bool   // the data under way is the greeting
	partial  []byte // of a command
	sending  []func()
	coming   [][]byte
	buf      []byte
	err      error // broken or closed
	deadline time.Time
	lastUp   time.Time
	lastDown time.Time
	some     chan struct{} // rings when there is something to read, or it is over
}

// Write sends whole commands on their way.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	var commands [][]string
	commands, c.partial = commandsOf(append(c.partial, p...))
	if len(commands) == 0 {
		return len(p), nil
	}
	l := c.link
	if isGreeting(commands) {
		c.instant = true
		c.mu.Unlock()
		l.redis.run(c, commands)
		c.mu.Lock()
		c.instant = false
		return len(p), nil
	}
	l.mu.Lock()
	lost, takes, frozen := l.dropUp || l.dead, l.travel(l.up), l.frozen
	l.mu.Unlock()
	if lost {
		return len(p), nil
	}
	at := later(&c.lastUp, takes)
	c.sending = append(c.sending, func() { l.redis.run(c, commands) })
	if frozen != nil {
		go func() {
			<-frozen
			c.mu.Lock()
			gone := c.err != nil // the connection was given up, and the kernel drops the data that it has not sent
			c.mu.Unlock()
			if !gone {
				c.arrive()
			}
		}()
		return len(p), nil
	}
	time.AfterFunc(time.Until(at), c.arrive)
	return len(p), nil
}

// arrive runs the first commands that were sent and have not arrived.
func (c *conn) arrive() {
	c.mu.Lock()
	if len(c.sending) == 0 {
		c.mu.Unlock()
		return
	}
	fn := c.sending[0]
	c.sending = c.sending[1:]
	c.mu.Unlock()
	fn()
}

// answers is where Redis writes the replies for a connection.
type answers struct{ c *conn }

func (a answers) Write(p []byte) (int, error) {
	a.c.out = append(a.c.out, p...)
	return len(p), nil
}

func (c *conn) deliver(p []byte, message bool) {
	l := c.link
	l.mu.Lock()
	lost, takes, frozen := l.dropDown || l.dead || message && l.deaf, l.travel(l.down), l.frozen
	l.mu.Unlock()
	if lost {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.instant {
		c.buf = append(c.buf, p...)
		c.ring()
		return
	}
	at := later(&c.lastDown, takes)
	c.coming = append(c.coming, append([]byte(nil), p...))
	if frozen != nil {
		go func() {
			<-frozen
			c.come()
		}()
		return
	}
	time.AfterFunc(time.Until(at), c.come)
}

func (c *conn) come() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.coming) == 0 {
		return
	}
	c.buf = append(c.buf, c.coming[0]...)
	c.coming = c.coming[1:]
	c.ring()
}

// push delivers a message of a channel.
func (c *conn) push(channel, text string) {
	var b []byte
	b = append(b, ">3\r\n$7\r\nmessage\r\n"...)
	for _, s := range []string{channel, text} {
		b = append(b, '$')
		b = append(b, itoa(len(s))...)
		b = append(b, "\r\n"+s+"\r\n"...)
	}
	c.deliver(b, true)
}

// later returns when data that takes a while arrives: not before the data that was sent earlier.
func later(last *time.Time, takes time.Duration) time.Time {
	at := time.Now().Add(takes)
	if at.Before(*last) {
		at = *last
	}
	*last = at
	return at
}

func (c *conn) ring() {
	select {
	case c.some <- struct{}{}:
	default:
	}
}

// Read waits for a reply, a message, the deadline or the end.
func (c *conn) Read(p []byte) (int, error) {
	for {
		c.mu.Lock()
		if len(c.buf) > 0 {
			n := copy(p, c.buf)
			c.buf = c.buf[n:]
			c.mu.Unlock()
			return n, nil
		}
		err, deadline := c.err, c.deadline
		c.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if deadline.IsZero() {
			<-c.some
			continue
		}
		left := time.Until(deadline)
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		timer := time.NewTimer(left)
		select {
		case <-c.some:
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (c *conn) end(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	c.ring()
}

// reset breaks the connection from the other side.
func (c *conn) reset() { c.end(io.EOF) }

// Close ends the connection on the process's side. Data that was sent may still arrive.
func (c *conn) Close() error {
	c.end(errors.New("use of closed network connection"))
	c.link.set(func(l *link) { delete(l.conns, c) })
	c.mu.Lock()
	quiet := len(c.sending) == 0
	c.mu.Unlock()
	if quiet {
		c.link.redis.shut(c)
	}
	return nil
}

func (c *conn) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (c *conn) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (c *conn) SetWriteDeadline(time.Time) error { return nil }
func (c *conn) SetDeadline(at time.Time) error   { return c.SetReadDeadline(at) }
func (c *conn) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	c.deadline = at
	c.mu.Unlock()
	c.ring()
	return nil
}

func nowhere() *bufio.Writer { return bufio.NewWriter(io.Discard) }
