package instance

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

// wire stands between one process and Redis, pub/sub included: a cut or a freeze hits all of its connections.
type wire struct {
	*testing.T
	listener net.Listener
	to       string
	mu       sync.Mutex
	open     []net.Conn
	over     bool          // the process is dead
	frozen   chan struct{} // closed when the process goes on; nil: it is not frozen
}

// wired returns a client of the server at an address, over a wire of its own.
func wired(t *testing.T, to string) (redis.UniversalClient, *wire) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	w := &wire{T: t, listener: l, to: to}
	var pipes sync.WaitGroup
	t.Cleanup(func() {
		w.thaw()
		w.cut()
		_ = l.Close()
		pipes.Wait()
	})
	pipes.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, ok := w.dial(client)
			if !ok {
				_ = client.Close()
				continue
			}
			pipes.Go(func() { w.copy(server, client) })
			pipes.Go(func() { w.copy(client, server) })
		}
	})
	rdb, err := store.Dial("redis://" + l.Addr().String() + "/0")
	must(t, err)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb, w
}

func (w *wire) dial(client net.Conn) (net.Conn, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return nil, false
	}
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		return nil, false
	}
	w.open = append(w.open, client, server)
	return server, true
}

func (w *wire) copy(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		frozen := w.frozen
		w.mu.Unlock()
		if frozen != nil {
			<-frozen
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// cut is the death of the process: the kernel closes its connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	for _, c := range w.open {
		_ = c.Close()
	}
}

// freeze stops the process: its connections stay, and nothing goes over them.
func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frozen = make(chan struct{})
}

func (w *wire) thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frozen != nil {
		close(w.frozen)
		w.frozen = nil
	}
}

// since waits until a condition holds, and returns how long that took.
func (w *wire) since(began time.Time, holds func() bool) time.Duration {
	w.Helper()
	for !holds() {
		if time.Since(began) > testTimeout {
			w.Fatalf("not within %v", testTimeout)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return time.Since(began)
}
