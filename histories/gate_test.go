package histories

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate is one client's way to Redis. While it is shut, the client's requests wait, and arrive late.
type gate struct {
	mu     sync.Mutex
	isShut bool
	late   []func()
}

func (g *gate) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &gated{Conn: conn, gate: g}, nil
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = true
}

// open lets the waiting requests through.
func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isShut = false
	for _, write := range g.late {
		write()
	}
	g.late = nil
}

// gated is a connection through a gate.
type gated struct {
	net.Conn
	gate *gate
}

func (c *gated) Write(p []byte) (int, error) {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if !c.gate.isShut {
		return c.Conn.Write(p)
	}
	kept := append([]byte(nil), p...)
	c.gate.late = append(c.gate.late, func() {
		_ = c.SetWriteDeadline(time.Now().Add(timeout))
		_, _ = c.Conn.Write(kept)
		_ = c.Conn.Close()
	})
	return len(p), nil
}

// Close keeps the connection open for requests that still wait: the client has given it up, but the network has not.
func (c *gated) Close() error {
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	if len(c.gate.late) > 0 {
		c.gate.late = append(c.gate.late, func() { _ = c.Conn.Close() })
		return nil
	}
	return c.Conn.Close()
}

// watchman notices when this process stood still: its timers were late by more than half of the time that the holder of a
// lock has to spare.
type watchman struct{ last atomic.Int64 }

func newWatchman(t *testing.T) *watchman {
	w := &watchman{}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	w.last.Store(time.Now().UnixNano())
	wg.Go(func() {
		before := time.Now()
		for pause(ctx, 5*time.Millisecond) {
			now := time.Now()
			if now.Sub(before) < heldFor/20 {
				w.last.Store(now.UnixNano())
			}
			before = now
		}
	})
	return w
}

// stood reports whether the process stood still a moment ago.
func (w *watchman) stood() bool {
	return time.Since(time.Unix(0, w.last.Load())) > heldFor/20
}
