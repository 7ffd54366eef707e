package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/store"
)

// A Redis at maxclients says so to whoever connects, and hangs up without reading. The client writes first, and so learns
// only that the connection broke. So whoever just reads is told why.

// listenTime is how long that is listened for, and sayTime how long it may take to connect.
const (
	listenTime = 200 * time.Millisecond
	sayTime    = time.Second
)

// whyHungUp is err, or what Redis says to new connections where err is that it hangs up.
func whyHungUp(ctx context.Context, rdb redis.UniversalClient, err error) error {
	if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	var addrs []string
	switch c := rdb.(type) {
	case *redis.Client:
		if c.Options().TLSConfig == nil {
			addrs = []string{c.Options().Addr}
		}
	case *redis.ClusterClient:
		if c.Options().TLSConfig == nil {
			addrs = c.Options().Addrs
		}
	}
	for _, addr := range addrs {
		if said := greeting(ctx, addr); strings.Contains(said, "max number of clients") {
			return fmt.Errorf("%w: %s says: %s", store.ErrBusy, addr, strings.TrimPrefix(said, "-"))
		}
	}
	return err
}

// greeting is the first line that a server says by itself. Redis says none unless it refuses the connection.
func greeting(ctx context.Context, addr string) string {
	ctx, done := context.WithTimeout(ctx, sayTime)
	defer done()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr) // of a client that asks sentinels the address is none
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(listenTime))
	text := make([]byte, 256)
	n, _ := conn.Read(text)
	line, _, _ := strings.Cut(string(text[:n]), "\r\n")
	return line
}
