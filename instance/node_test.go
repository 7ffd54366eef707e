package instance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
)

// node is a manager that runs.
type node struct {
	*testing.T
	m        *Manager
	sessions chan *Session // one for each call of serve
	stop     context.CancelFunc
	done     chan error // what Run returned
}

// node runs a manager whose serve waits until it is to leave.
func (r *rig) node(c Config) *node {
	r.Helper()
	return r.nodeServing(c, func(s *Session) error {
		select {
		case <-s.Draining():
		case <-s.Context().Done():
		}
		return nil
	})
}

func (r *rig) nodeServing(c Config, serve func(*Session) error) *node {
	r.Helper()
	m, err := New(r.q.Client(), r.p.Namespace, c)
	must(r, err)
	ctx, stop := context.WithCancel(context.Background())
	n := &node{T: r.T, m: m, sessions: make(chan *Session, 100), stop: stop, done: make(chan error, 1)}
	go func() {
		n.done <- m.Run(ctx, func(s *Session) error {
			n.sessions <- s
			return serve(s)
		})
	}()
	r.Cleanup(func() {
		stop()
		for len(n.done) == 0 {
			time.Sleep(time.Millisecond)
		}
	})
	return n
}

// session waits for the next registration.
func (n *node) session() *Session {
	n.Helper()
	return wait(n, n.sessions, "a session")
}

// leave ends the manager as SIGTERM does, and waits.
func (n *node) leave() error {
	n.Helper()
	n.stop()
	return n.ended()
}

func (n *node) ended() error {
	n.Helper()
	err := wait(n, n.done, "the end of Run")
	n.done <- err // for the cleanup
	return err
}

func wait[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testTimeout):
		t.Fatalf("no %s within %v", what, testTimeout)
		panic("not reached")
	}
}

// cause waits until a context has ended and says why.
func cause(t testing.TB, ctx context.Context) error {
	t.Helper()
	wait(t, ctx.Done(), "end of a context")
	return context.Cause(ctx)
}

// terms collects the terms of a session; each lasts until its context ends.
type terms struct {
	began chan queue.Term
	ended chan error // causes
}

func leading(s *Session) *terms {
	t := &terms{began: make(chan queue.Term, 100), ended: make(chan error, 100)}
	go s.Lead(func(ctx context.Context, term queue.Term) {
		t.began <- term
		<-ctx.Done()
		t.ended <- context.Cause(ctx)
	})
	return t
}

func wantCause(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("cause %v, want %v", got, want)
	}
}
