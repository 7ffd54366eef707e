package api

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// Limits of connections.
const (
	headerTime = 5 * time.Second  // until a request's header is there, and the TLS handshake is done
	idleTime   = 60 * time.Second // between two requests
	mostHeader = 64 << 10         // bytes of a header
	closeTime  = 5 * time.Second  // until requests that are being answered are cut off
)

// Serve answers the requests that come by a listener until ctx ends, within limits: a client that is slow, or opens many
// connections, keeps others waiting at most. With a TLS config it speaks TLS. When ctx
// ends it ends the streams of events, finishes what it answers, for at most five seconds, and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener, conf *tls.Config) error {
	l = &connections{Listener: l}
	if conf != nil {
		l = tls.NewListener(l, conf)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // with HTTP/2, one connection is hundreds
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader, Protocols: protocols,
		ConnContext: connected, ErrorLog: log.New(io.Discard, "", 0), // mistakes of clients are not news
	}
	server.RegisterOnShutdown(s.Close) // nobody comes in any more, so a stream that ends here is taken up elsewhere
	defer s.Close()
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
	<-ended //nolint:errcheck // http.ErrServerClosed
	return nil
}
