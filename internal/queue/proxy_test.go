package queue_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
)

// proxy stands between a client and a Redis. While it drops replies, each connection on which one would come breaks
// instead: Redis did the command, and the client does not know it.
type proxy struct {
	addr        string
	dropReplies atomic.Bool
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String()}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			wg.Go(func() { pipe(server, client, nil) })
			wg.Go(func() { pipe(client, server, &p.dropReplies) })
		}
	})
	return p
}

func pipe(to, from net.Conn, drop *atomic.Bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || drop != nil && drop.Load() {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// scan is every key of a server that is this test's alone.
func (w *world) scan() map[string]bool {
	w.Helper()
	keys := map[string]bool{}
	cluster, ok := w.rdb.(*redis.ClusterClient)
	if !ok {
		w.Fatal("not a cluster")
	}
	node, err := cluster.MasterForKey(w.Context(), "x")
	w.must(err)
	list, err := node.Keys(w.Context(), "*").Result()
	w.must(err)
	for _, k := range list {
		keys[k] = true
	}
	return keys
}
