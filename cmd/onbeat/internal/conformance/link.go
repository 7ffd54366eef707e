package conformance

import (
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// link is a connection from one instance to Redis that can be cut without closing anything: the bytes on it stay where they
// are, as when a cable is pulled. New connections are accepted, and hear nothing.
type link struct {
	listener net.Listener
	to       string

	mu    sync.Mutex
	whole chan struct{} // closed while bytes may pass
	conns []net.Conn
	over  bool
	gone  sync.WaitGroup
}

func newLink(to string) (*link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &link{listener: ln, to: to, whole: make(chan struct{})}
	close(l.whole)
	l.gone.Go(l.accept)
	return l, nil
}

func (l *link) addr() string { return l.listener.Addr().String() }

func (l *link) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		if !l.keep(near) {
			return
		}
		l.gone.Go(func() { l.join(near) })
	}
}

// keep records a connection, so that close ends it.
func (l *link) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		_ = c.Close()
		return false
	}
	l.conns = append(l.conns, c)
	return true
}

// join passes bytes between an instance and Redis until one of them hangs up.
func (l *link) join(near net.Conn) {
	defer func() { _ = near.Close() }()
	if !l.pass() {
		return
	}
	ctx, done := context.WithTimeout(context.Background(), 5*time.Second)
	far, err := new(net.Dialer).DialContext(ctx, "tcp", l.to)
	done()
	if err != nil || !l.keep(far) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [2][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], &gated{way[0], l})
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

// gated reads, and holds back what it has read while the link is cut.
type gated struct {
	io.Reader
	l *link
}

func (g *gated) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if !g.l.pass() {
		return 0, io.EOF
	}
	return n, err
}

// pass waits while the link is cut. It reports whether the link still exists.
func (l *link) pass() bool {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	<-whole
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.over
}

// cut stops all bytes, in both directions.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.whole = make(chan struct{})
}

// mend lets bytes pass again.
func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.let()
}

func (l *link) let() {
	select {
	case <-l.whole:
	default:
		close(l.whole)
	}
}

// close ends the link and all connections through it.
func (l *link) close() {
	l.mu.Lock()
	l.over = true
	l.let()
	_ = l.listener.Close()
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.mu.Unlock()
	l.gone.Wait()
}

// linkable returns the address of a URL that a link can reach, and a function that makes the URL through the link.
func linkable(rawURL string) (addr string, through func(addr string) string, ok bool) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme != "redis" {
		return "", nil, false
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "6379"
	}
	return net.JoinHostPort(host, port), func(addr string) string {
		v := *u
		v.Host = addr
		return v.String()
	}, true
}
