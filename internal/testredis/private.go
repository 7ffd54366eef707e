package testredis

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Server is a real Redis that belongs to one test, which may do to it what production does to a Redis. If a method fails,
// it fails the test; call methods from the test's own goroutine.
type Server struct {
	t     testing.TB
	proc  Process
	about string
	up    bool
}

// Private starts a real Redis for this test alone and removes it when the test ends. The args are those of redis-server:
// with "--appendonly", "yes" it keeps its data over Kill and Restart; by default it keeps data only in memory. Without a
// real Redis the test is skipped, or fails if ONBEAT_REQUIRE_REAL=1. Private never uses the server that ONBEAT_TEST_REDIS
// names.
func Private(t testing.TB, args ...string) *Server {
	t.Helper()
	var why []error
	for _, b := range backends() {
		if _, ok := b.(children); ok {
			args = append([]string{"--dir", t.TempDir()}, args...)
		}
		s, err := privateOn(t, b, args)
		if err == nil {
			return s
		}
		why = append(why, err)
	}
	withoutReal(t, why...)
	return nil
}

func privateOn(t testing.TB, b Backend, args []string) (*Server, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	p, err := startOn(ctx, b, slices.Clone(args))
	if err != nil {
		return nil, err
	}
	s := &Server{t: t, proc: p, up: true}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		if err := p.Remove(ctx); err != nil {
			t.Errorf("testredis: remove the private Redis: %v", err)
		}
	})
	name, err := version(ctx, s.URL())
	if err != nil {
		return nil, errors.Join(err, p.Stop(ctx))
	}
	s.about = name + " " + b.Where()
	return s, nil
}

// String returns the name of the server: "redis-server 7.0.15 in a container".
func (s *Server) String() string { return s.about }

// URL returns where the server listens. It stays the same over Restart.
func (s *Server) URL() string { return "redis://" + s.proc.Addr() + "/0" }

// Addr returns the host and port of URL.
func (s *Server) Addr() string { return s.proc.Addr() }

// Client returns a client of this server, closed when the test ends. The functions change its options first: timeouts,
// retries.
func (s *Server) Client(change ...func(*redis.Options)) *redis.Client {
	s.t.Helper()
	opts := &redis.Options{Addr: s.proc.Addr()}
	for _, f := range change {
		f(opts)
	}
	rdb := newClient(opts)
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// do carries out one operation on the process.
func (s *Server) do(what string, op func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := op(ctx); err != nil {
		s.t.Fatalf("testredis: %s the private Redis: %v", what, err)
	}
}

// Stop asks the server to end, which lets it write its data, and waits until it has ended.
func (s *Server) Stop() {
	s.t.Helper()
	s.do("stop", s.proc.Stop)
	s.up = false
}

// Kill ends the server at once with SIGKILL, and waits until it is gone.
func (s *Server) Kill() {
	s.t.Helper()
	s.do("kill", s.proc.Kill)
	s.up = false
}

// Pause freezes the server with SIGSTOP. It keeps its connections and accepts new ones, but answers none of them.
func (s *Server) Pause() {
	s.t.Helper()
	s.do("pause", s.proc.Pause)
}

// Resume lets a paused server go on.
func (s *Server) Resume() {
	s.t.Helper()
	s.do("resume", s.proc.Resume)
}

// Restart stops the server if it runs, starts it again, and waits until it answers. Its port and settings stay the same.
// Its data stays only if it was started with "--appendonly", "yes".
func (s *Server) Restart() {
	s.t.Helper()
	if s.up {
		s.Stop()
	}
	s.do("restart", s.proc.Restart)
	s.up = true
}

// Restored starts a Redis from a backup: the file that `redis-cli --rdb` writes.
func Restored(t testing.TB, backup string) *Server {
	t.Helper()
	needProgram(t)
	dir := t.TempDir()
	data, err := os.ReadFile(backup)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "dump.rdb"), data, 0o600))
	return member(t, "--dir", dir, "--dbfilename", "dump.rdb")
}
