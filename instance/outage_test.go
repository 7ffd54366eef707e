package instance

import (
	"context"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

func TestOutage_atStartIsWaitedOut(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := rigOf(t, srv.Client(), "ns")
	srv.Stop()
	n := r.node(Config{Lease: time.Second})
	time.Sleep(200 * time.Millisecond) // it has tried, and not given up
	if len(n.sessions)+len(n.done) != 0 {
		t.Fatal("it did something without Redis")
	}
	srv.Restart()
	n.session()
	must(t, n.leave())
}

func TestOutage_withinTheLeaseIsTheSameGeneration(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t, "--appendonly", "yes", "--appendfsync", "always")
	r := rigOf(t, srv.Client(), "ns")
	n := r.node(Config{Lease: time.Minute}) // long, so that a slow machine can restart a server
	s := n.session()
	lead := leading(s)
	term := wait(t, lead.began, "term")
	srv.Kill()
	s.Doubt()
	srv.Restart()
	old := r.up("b", "standby", standby) // makes a message, and proves that Redis is back
	s.Doubt()
	testredis.Eventually(t, testTimeout, func() bool {
		return r.left(member{id: n.m.ID()}) > 59*time.Second
	}, "the lease is renewed")
	if r.beat(old).Epoch != term.Epoch || len(lead.ended) != 0 || s.Context().Err() != nil {
		t.Fatalf("term %d ended with the outage: %v", term.Epoch, context.Cause(s.Context()))
	}
	must(t, n.leave())
}

func TestOutage_longerThanTheLeaseIsANewGeneration(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	r := rigOf(t, srv.Client(), "ns")
	n := r.node(Config{Lease: time.Second, Release: "v1"})
	first := n.session()
	lead := leading(first)
	wait(t, lead.began, "term")
	srv.Pause()
	wantCause(t, cause(t, first.Context()), ErrLeaseLost)
	wantCause(t, wait(t, lead.ended, "end of the term"), ErrLeaseLost)
	srv.Resume()
	second := n.session()
	term := wait(t, leading(second).began, "term again")
	if second.Gen <= first.Gen || term.Gen != second.Gen {
		t.Fatalf("generation %d after %d", second.Gen, first.Gen)
	}
	must(t, n.leave())
}
