package network

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/onbeat/onbeat/integration/internal/containers"
	"github.com/onbeat/onbeat/integration/internal/rig"
	"github.com/onbeat/onbeat/internal/trial"
)

// The proxy itself may leave a goroutine behind: one that passes on what it had read when its link was closed waits for a
// reader for ever.
func TestMain(m *testing.M) {
	containers.Main(m, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"))
}

// every is the interval of the schedules.
const every = 200 * time.Millisecond

// world is one namespace on a Redis of its own.
type world struct {
	*rig.World
	addr  string
	ended time.Time // when an instance was last asked to stop
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w, srv := rig.Private(t)
	return &world{World: w, addr: srv.Addr()}
}

// node is one instance, with its link to Redis.
type node struct {
	*link
	*rig.Process
	w *world
}

// serve starts an instance behind a link of its own; name is its release.
func (w *world) serve(name, lease string) *node {
	w.Helper()
	n := &node{link: newLink(w.T, name, w.addr), w: w}
	config := w.Config(name+".yaml", "concurrency: 20\nlease: "+lease+"\n", w.Beat("a", every, "missed: all"), w.Beat("b", every, "missed: all"))
	n.Process = w.Serve(name, config, "--release", name, "--redis", "redis://"+n.proxy.Listen+"/0")
	return n
}

// stop sends SIGTERM and waits for a clean exit.
func (n *node) stop() {
	n.w.Helper()
	n.w.ended = time.Now()
	n.Stop()
}

// long enqueues a task that takes the given time, and waits until it has begun.
func (w *world) long(id string, takes time.Duration) trial.Arrival {
	w.Helper()
	w.Must("enqueue", "http", "--id", id, "--payload", w.Payload("long?for="+takes.String()))
	return w.Arrived(id)
}

// wantSteady judges the schedules by the recorder and by the audit, which must agree, and reports the scenario. Slots of the
// last second may have no instance left to run them.
func (w *world) wantSteady(scenario string, besides ...string) *trial.Result {
	w.Helper()
	got := w.Steady(every, w.ended.Add(-time.Second), "a", "b")
	w.Row(scenario, got, besides...)
	return got
}
