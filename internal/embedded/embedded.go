// Package embedded runs a Redis where none is installed: for `onbeat dev`, for `onbeat demo` and for tests. Nothing needs
// to be installed or configured.
//
// If a redis-server (or a valkey-server) is on PATH, the package starts it as a child process on 127.0.0.1. Given a
// directory, the child keeps its data there. If there is no such program, a server inside this process takes its place; its
// data is gone when the process ends. [Server.String] says in one line for a person which of the two it is.
//
// It is not for production: there is no replica, and no other machine can reach it. Other users of this machine can reach
// it, but need the password, which is new at each start; [Server.URL] has it.
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

// ErrInUse says that another process keeps its data in the directory. Two servers that write to one directory would destroy
// each other's data.
var ErrInUse = errors.New("data directory is in use")

// ErrDied says that the server ended although Close was not called.
var ErrDied = errors.New("the embedded Redis ended unexpectedly")

// Kind says where a server runs.
type Kind string

const (
	// Child is a redis-server in a process of its own.
	Child Kind = "child process"

	// InProcess is a server inside this process. It keeps nothing on disk, and has fewer commands than Redis.
	InProcess Kind = "in-process"
)

// Options say what to start. The zero value is a server on a free port that keeps nothing on disk.
type Options struct {
	// Dir is where a child keeps its data, in an append-only file that is flushed to disk each second. If it is missing, it
	// is made for this user only. If others own it or may write to it, it is refused, because a server loads what it finds
	// there. Default "": the data is lost when the server ends. An in-process server ignores it.
	Dir string

	// InProcess starts the in-process server even if a redis-server is on PATH.
	InProcess bool

	// Port is the port on 127.0.0.1. Default 0: a free one.
	Port int

	// NoPassword gives everyone on this machine access. Use it only for tests whose servers are replicas of each other, and
	// never where tasks run programs.
	NoPassword bool

	// Args are passed to the redis-server after our own, so they take precedence: "--maxmemory", "100mb". An in-process
	// server ignores them.
	Args []string

	// Log receives what the server prints, at debug. The zero Logger discards it.
	Log zerolog.Logger
}

// Server is a running Redis. Its methods may be called from many goroutines.
type Server struct {
	kind Kind
	name string // redis-server 7.0.15
	dir  string // as the caller gave it
	addr string
	pid  int

	password string // "" for none

	stop func() error // ends the server and waits; called once

	closing chan struct{} // closed when Close is called
	close   func() error
	done    chan struct{} // closed when the server has ended
	err     error         // why it ended; set before done is closed
}

// Start starts a Redis and returns once it answers. The context bounds only the start: the server runs until
// [Server.Close], and no longer than this process, even if this process is killed. (That is on Linux. Elsewhere an orphan
// keeps its directory locked, and the next Start says so.)
//
// A child is not in the terminal's process group. So a Ctrl-C reaches only this process, which can finish its work before
// it ends its Redis.
//
// Start returns ErrInUse if another process has its data in Options.Dir.
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

// newPassword returns a random password of letters and digits.
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

// newServer makes the parts that every kind shares. Its stop ends the server and waits until it is gone.
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

// ended records why the server ended. The goroutine that watches the server calls it once.
func (s *Server) ended(err error) {
	select {
	case <-s.closing:
	default:
		s.err = cmp.Or(err, ErrDied)
	}
	close(s.done)
}

// URL is where clients connect: redis://:PASSWORD@127.0.0.1:PORT/0. It contains the password, so do not log it or put it on
// a command line.
func (s *Server) URL() string {
	if s.password == "" {
		return "redis://" + s.addr + "/0"
	}
	return "redis://:" + s.password + "@" + s.addr + "/0" // letters and digits: see newPassword
}

// Addr is the host and port of URL.
func (s *Server) Addr() string { return s.addr }

// Kind says whether the server is a child process or runs in this one.
func (s *Server) Kind() Kind { return s.kind }

// PID is the process ID of a child, or this process's own for an in-process server.
func (s *Server) PID() int {
	if s.kind == InProcess {
		return os.Getpid()
	}
	return s.pid
}

// Version is the name and version of the server: "redis-server 7.0.15", "valkey 8.1.3", or "miniredis".
func (s *Server) Version() string { return s.name }

// String says in one line for a person what runs and what happens to its data.
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

// Done is closed when the server has ended, whether or not Close ended it.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says why the server ended. It is ErrDied, with the last output of the server, if Close was not called. It is nil
// while the server runs, and after Close.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Close ends the server and returns when it is gone. A child is asked to end, so that it can write its data, and is killed
// if it has not ended after a few seconds. Later calls do nothing and return the same.
func (s *Server) Close() error { return s.close() }

// stopTimeout is how long a child may take to write its data and end.
const stopTimeout = 5 * time.Second
