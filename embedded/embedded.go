// Package embedded runs a Redis for people who have none: for `onbeat dev`, for
// `onbeat demo` and for tests. Nothing needs to be installed or configured.
//
// If a redis-server (or a valkey-server) is on PATH, it is started as a child
// process on 127.0.0.1, and it keeps its data when it is given a directory. If
// none is, a server inside this process takes its place; what that one holds is
// gone when the process ends. [Server.String] says which of the two it is, in one
// line meant for people.
//
// It is not for production: there is no replica, and no other machine can reach it.
// Other users of this machine can, and need the password that each start makes anew;
// [Server.URL] has it.
package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// ErrInUse reports that another process keeps its data in the directory asked for.
// Two servers that write one directory would destroy each other's data.
var ErrInUse = errors.New("data directory is in use")

// ErrDied reports that the server ended without having been asked to.
var ErrDied = errors.New("the embedded Redis ended unexpectedly")

// Kind tells where a server runs.
type Kind string

const (
	// Child is a redis-server in a process of its own.
	Child Kind = "child process"

	// InProcess is a server inside this process. It keeps nothing on disk, and it
	// knows fewer commands than Redis does.
	InProcess Kind = "in-process"
)

// Options choose what Start starts. The zero value is a server on a free port
// that keeps nothing on disk.
type Options struct {
	// Dir is where a child keeps its data, in an append-only file that is flushed
	// to disk each second. It is made, for this user only, if it is missing, and
	// refused if others own it or may write to it: a server loads what it finds.
	// Default "": everything is lost when the server ends. An in-process server
	// does not read or write it.
	Dir string

	// InProcess asks for the in-process server even where a redis-server is on PATH.
	InProcess bool

	// Port to listen on, on 127.0.0.1. Default 0: a free one.
	Port int

	// NoPassword lets everyone on this machine in. It is for tests whose servers are
	// each other's replicas, and for nothing whose tasks run programs.
	NoPassword bool

	// Args are given to the redis-server after our own, so they win over those:
	// "--maxmemory", "100mb". An in-process server ignores them.
	Args []string

	// Log receives what the server prints, at debug level. The zero Logger
	// discards it.
	Log zerolog.Logger
}

// Server is a running Redis. Its methods may be called from many goroutines.
type Server struct {
	kind Kind
	name string // redis-server 7.0.15
	dir  string // as it was given
	addr string
	pid  int

	password string // "" for none

	stop func() error // ends it and waits; called once

	closing chan struct{} // closed when Close is called
	close   func() error
	done    chan struct{} // closed when it has ended
	err     error         // why it ended; set before done is closed
}

// Start starts a Redis and returns once it answers. Its context bounds the start
// and nothing more: the server runs until [Server.Close], and no longer than this
// process, even if that is killed (on Linux; elsewhere an orphan keeps its
// directory locked, and the next Start says so).
//
// A child is not in the terminal's process group. A Ctrl-C therefore reaches this
// process alone, which can finish its work before it takes its Redis away.
//
// Start returns ErrInUse when another process has its data in Options.Dir.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Port < 0 || opts.Port > 65535 {
		return nil, fmt.Errorf("embedded Redis: port %d is not between 0 and 65535", opts.Port)
	}
	if opts.InProcess {
		return startInProcess(opts)
	}
	path, ok := lookServer()
	if !ok {
		return startInProcess(opts)
	}
	return startChild(ctx, path, opts)
}

// newPassword is one that nobody can guess, of letters and digits.
func newPassword(opts Options) string {
	if opts.NoPassword {
		return ""
	}
	return rand.Text()
}

// lookServer finds a server program on PATH.
func lookServer() (string, bool) {
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// newServer readies the parts that every kind shares. Its stop ends the server
// and waits until it is gone.
func newServer(kind Kind, stop func() error) *Server {
	s := &Server{
		kind:    kind,
		stop:    stop,
		closing: make(chan struct{}),
		done:    make(chan struct{}),
	}
	s.close = sync.OnceValue(func() error {
		close(s.closing)
		return s.stop()
	})
	return s
}

// ended records why the server ended. Whoever watches the server calls it, once.
func (s *Server) ended(err error) {
	select {
	case <-s.closing:
	default:
		s.err = cmp.Or(err, ErrDied)
	}
	close(s.done)
}

// URL is where clients connect: redis://:PASSWORD@127.0.0.1:PORT/0. It lets in whoever
// reads it, so it is for no log and no command line.
func (s *Server) URL() string {
	if s.password == "" {
		return "redis://" + s.addr + "/0"
	}
	return "redis://:" + s.password + "@" + s.addr + "/0" // letters and digits: see newPassword
}

// Addr is the host and port of URL.
func (s *Server) Addr() string { return s.addr }

// Kind tells whether the server is a child process or lives in this one.
func (s *Server) Kind() Kind { return s.kind }

// PID is the process ID of a child, and this process's own for an in-process server.
func (s *Server) PID() int {
	if s.kind == InProcess {
		return os.Getpid()
	}
	return s.pid
}

// Version is the name and version of what runs: "redis-server 7.0.15", "valkey
// 8.1.3", or "miniredis".
func (s *Server) Version() string { return s.name }

// String says, in a line for people, what runs and what becomes of its data.
func (s *Server) String() string {
	switch {
	case s.kind == InProcess:
		return "in-process Redis (miniredis; data is lost at exit)"
	case s.dir == "":
		return s.name + " (child process; data is lost at exit)"
	default:
		return fmt.Sprintf("%s (child process, data in %s/)", s.name, trimSlash(s.dir))
	}
}

func trimSlash(dir string) string {
	for len(dir) > 1 && os.IsPathSeparator(dir[len(dir)-1]) {
		dir = dir[:len(dir)-1]
	}
	return dir
}

// Done is closed when the server has ended, whether Close ended it or not.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err tells why the server ended: ErrDied, with what it printed last, if nobody
// asked it to. It is nil while the server runs, and after Close.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close ends the server and returns when it is gone. A child is asked first, so
// that it writes out what it holds, and killed if it has not ended after a few
// seconds. Calling Close again does nothing and returns the same.
func (s *Server) Close() error { return s.close() }

// stopTimeout is how long a child may take to write out its data and end.
const stopTimeout = 5 * time.Second
