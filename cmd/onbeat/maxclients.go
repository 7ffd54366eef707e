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

	"github.com/onbeat/onbeat/task"
)

// A Redis at maxclients sends the reason to each new connection, and hangs up without reading. The Redis client writes first, so
// it learns only that the connection broke. A connection that only reads gets the reason.

// listenTime limits the read of that reason, and sayTime the connecting.
const (
	listenTime = 200 * time.Millisecond
	sayTime    = time.Second
)

// whyHungUp returns err. If err means that Redis hung up, it returns the reason that Redis sends to new connections.
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
			return fmt.Errorf("%w: %s says: %s", task.ErrBusy, addr, strings.TrimPrefix(said, "-"))
		}
	}
	return err
}

// greeting returns the first line that a server sends unasked. Redis sends one only if it refuses the connection.
func greeting(ctx context.Context, addr string) string {
	ctx, done := context.WithTimeout(ctx, sayTime)
	defer done()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr) // the address of a client that asks sentinels cannot be dialled
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
