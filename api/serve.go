package api

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// What connections may take.
const (
	mostConnections = 1_024
	mostKept        = 768              // connections, before those that were answered are hung up on
	headerTime      = 5 * time.Second  // until a request's header is there, and the TLS handshake is done
	idleTime        = 60 * time.Second // between two requests
	mostHeader      = 64 << 10         // bytes of a header
	closeTime       = 5 * time.Second  // until requests that are being answered are cut off
)

// Serve answers the requests that come by a listener until ctx ends, within limits: a client that is slow, or opens many
// connections, keeps others waiting at most. With a TLS config it speaks TLS. It looks for errands that nobody works on. When ctx
// ends it ends the streams of events, leaves its errands to other instances, finishes what it answers, for at most five seconds, and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener, conf *tls.Config) error {
	room := &bounded{Listener: l, slots: make(chan struct{}, mostConnections), closed: make(chan struct{})}
	l = room
	if conf != nil {
		l = tls.NewListener(l, conf)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // with HTTP/2, one connection is hundreds
	server := &http.Server{
		Handler: room.turn(s), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader, Protocols: protocols,
		ErrorLog: log.New(io.Discard, "", 0), // what clients do wrong is not news
	}
	server.RegisterOnShutdown(s.Close) // nobody comes in any more, so a stream that ends here is taken up elsewhere
	defer s.Close()
	defer s.work.follow()()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if server.Shutdown(bound) != nil {
		_ = server.Close()
	}
	<-ended
	return nil
}

// bounded lets a number of connections in at once. More wait in the kernel.
type bounded struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept waits until there is room, and for a connection.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.closed:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err
	}
	return &counted{Conn: conn, leave: sync.OnceFunc(func() { <-b.slots })}, nil
}

// turn makes room for those that wait: when most of it is taken, a connection ends with the answer.
func (b *bounded) turn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(b.slots)-1 > mostKept { // one is for the connection that is to come
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// Close stops to accept.
func (b *bounded) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// counted gives its room back when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
