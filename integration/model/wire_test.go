package model

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/onbeat/onbeat/internal/testredis"
)

// wire is a connection to the in-process server without goroutines between the two ends: the server answers a command while
// the client writes it. A search makes some hundred thousand calls, and waking goroutines would take half of their time.
type wire struct {
	server   *server.Server
	peer     *server.Peer
	w        *bufio.Writer
	in, out  bytes.Buffer
	scripts  *scripts
	isClosed bool
}

// connect returns a client of a new server, which runs the given scripts.
func connect(t testing.TB, s *scripts) (*testredis.Miniredis, *redis.Client) {
	t.Helper()
	m := testredis.Mini(t)
	if err := m.Client.Ping(t.Context()).Err(); err != nil { // the server starts with the first connection
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{
		Addr:                     "model",
		PoolSize:                 1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			w := &wire{server: m.Server(), scripts: s}
			w.w = bufio.NewWriter(&w.out)
			w.peer = server.NewPeer(w.w)
			return w, nil
		},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return m, rdb
}

func (w *wire) Write(p []byte) (int, error) {
	if w.isClosed {
		return 0, os.ErrClosed
	}
	w.in.Write(p)
	for {
		args, n := command(w.in.Bytes())
		if n == 0 {
			return len(p), nil
		}
		w.in.Next(n)
		w.server.Dispatch(w.peer, w.scripts.swap(args))
		w.peer.Flush()
	}
}

func (w *wire) Read(p []byte) (int, error) {
	if w.out.Len() == 0 {
		return 0, io.EOF // each reply is there as soon as its command was written
	}
	return w.out.Read(p)
}

func (w *wire) Close() error {
	w.isClosed = true
	return nil
}

func (*wire) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (*wire) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (*wire) SetDeadline(time.Time) error      { return nil }
func (*wire) SetReadDeadline(time.Time) error  { return nil }
func (*wire) SetWriteDeadline(time.Time) error { return nil }

// command reads the first command that a client wrote, and returns its length, or 0 if it is not complete.
func command(b []byte) (args []string, length int) {
	rest := b
	number := func(mark byte) (int, bool) {
		end := bytes.Index(rest, []byte("\r\n"))
		if end < 1 || rest[0] != mark {
			return 0, false
		}
		n, err := strconv.Atoi(string(rest[1:end]))
		rest = rest[end+2:]
		return n, err == nil
	}
	n, ok := number('*')
	if !ok {
		return nil, 0
	}
	for range n {
		size, ok := number('$')
		if !ok || len(rest) < size+2 {
			return nil, 0
		}
		args = append(args, string(rest[:size]))
		rest = rest[size+2:]
	}
	return args, len(b) - len(rest)
}
