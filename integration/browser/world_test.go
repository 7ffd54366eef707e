package browser

import (
	"io"
	"net"
	"regexp"
	"sync"
	"testing"

	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

// world is one namespace on a Redis, with instances of the program behind one address.
type world struct {
	*rig.World
	front *front
}

func newWorld(t *testing.T) *world {
	t.Helper()
	chromium(t)
	return &world{rig.New(t), newFront(t)}
}

// privateWorld is a world on a Redis of its own, which the test may disturb.
func privateWorld(t *testing.T) (*world, *testredis.Server) {
	t.Helper()
	chromium(t)
	w, srv := rig.Private(t)
	return &world{w, newFront(t)}, srv
}

// browse opens a browser on the address of the instances.
func (w *world) browse() *tab {
	w.Helper()
	return browse(w.T, "http://"+w.front.Addr().String())
}

// head is the head of the configs: each instance serves the API at a port of its own.
const head = "concurrency: 20\nlease: 5s\napi: {listen: '127.0.0.1:0'}\n"

// serve starts an instance of a release and puts it behind the address.
func (w *world) serve(release, head string, schedules ...string) *rig.Process {
	w.Helper()
	p := w.Serve(release, w.Config(release+".yaml", head, schedules...), "--release", release)
	p.Said("ready")
	w.front.add(addressOf(p))
	return p
}

var servedAt = regexp.MustCompile(`"url":"https?://([^"]+)"`)

// addressOf returns where a process serves the API.
func addressOf(p *rig.Process) string {
	p.Said("serving the API")
	return servedAt.FindStringSubmatch(p.Log())[1]
}

// front is one address for all instances, as a load balancer has: a connection goes to the newest of them that takes it.
type front struct {
	net.Listener
	mu    sync.Mutex
	list  []string
	conns sync.WaitGroup
}

func newFront(t *testing.T) *front {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{Listener: l}
	f.conns.Go(f.accept)
	t.Cleanup(func() {
		_ = l.Close()
		f.conns.Wait()
	})
	return f
}

func (f *front) add(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, address)
}

func (f *front) accept() {
	for {
		from, err := f.Accept()
		if err != nil {
			return
		}
		f.conns.Go(func() { f.pass(from) })
	}
}

// dial connects to the newest instance that is there, or returns nil.
func (f *front) dial() net.Conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.list) - 1; i >= 0; i-- {
		if to, err := net.Dial("tcp", f.list[i]); err == nil {
			return to
		}
	}
	return nil
}

// pass passes a connection on, until one of its ends is gone.
func (f *front) pass(from net.Conn) {
	defer func() { _ = from.Close() }()
	to := f.dial()
	if to == nil {
		return
	}
	defer func() { _ = to.Close() }()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(from, to)
		_ = from.Close()
		_ = to.Close()
	}()
	_, _ = io.Copy(to, from)
	_ = from.Close()
	_ = to.Close()
	<-back
}
