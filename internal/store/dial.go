package store

import (
	"context"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialAlways makes a dialer that never fails. If the dial fails, it returns a connection on which every use fails, with
// the error of the dial.
//
// go-redis counts failed dials over the whole life of a client. After as many as the pool's size it refuses to dial until
// its own probe gets through, once a second. A dispatcher cannot wait for that second after Redis is back. It needs no such
// limit, because every caller pauses a little between two tries.
func dialAlways(dial redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return noConn{err: unmade{err}, network: network, addr: addr}, nil
		}
		return conn, nil
	}
}

// dialHook is dialAlways for a client that comes with a dialer of its own.
type dialHook struct{}

func (dialHook) DialHook(dial redis.DialHook) redis.DialHook          { return dialAlways(dial) }
func (dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// noConn is a connection that could not be made.
type noConn struct {
	err           error
	network, addr string
}

func (c noConn) Read([]byte) (int, error)  { return 0, c.err }
func (c noConn) Write([]byte) (int, error) { return 0, c.err }
func (c noConn) Close() error              { return nil }

// SyscallConn fails, which tells a pool that a connection is dead. Otherwise the connection of a caller that gave up would
// stay in the pool, and would fail a call long after Redis is back.
func (c noConn) SyscallConn() (syscall.RawConn, error) { return nil, c.err }

func (c noConn) LocalAddr() net.Addr  { return c }
func (c noConn) RemoteAddr() net.Addr { return c }

// Setting a deadline succeeds, because an error here would hide the error of the dial.
func (c noConn) SetDeadline(time.Time) error      { return nil }
func (c noConn) SetReadDeadline(time.Time) error  { return nil }
func (c noConn) SetWriteDeadline(time.Time) error { return nil }

// Network and String make a noConn its own [net.Addr].
func (c noConn) Network() string { return c.network }
func (c noConn) String() string  { return c.addr }
