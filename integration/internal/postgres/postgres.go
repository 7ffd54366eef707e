// Package postgres starts a PostgreSQL for the benches, with PostgreSQL's own settings, on 127.0.0.1 and a free port. It can be away
// for a while, and come back with its data.
package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/onbeat/onbeat/internal/embedded"
)

// Server is a cluster of its own.
type Server struct {
	URL string

	bin, dir string
	port     int
	attr     *syscall.SysProcAttr
	cmd      *exec.Cmd
	ended    chan struct{}
}

// Find returns the folder of initdb and postgres.
func Find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("PostgreSQL's initdb is not installed")
	}
	return filepath.Dir(found[len(found)-1]), nil
}

// Start makes a cluster and starts it. PostgreSQL refuses to run as root, so then the user postgres runs it. The cluster ends with
// this process, even if that is killed.
func Start(ctx context.Context) (*Server, error) {
	bin, err := Find()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, attr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGINT}}
	if s.dir, err = os.MkdirTemp("", "onbeat-bench-postgres-"); err != nil {
		return nil, err
	}
	if err = s.make(ctx); err == nil {
		err = s.Up(ctx)
	}
	if err != nil {
		_ = os.RemoveAll(s.dir)
		return nil, err
	}
	return s, nil
}

func (s *Server) make(ctx context.Context) (err error) {
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			return err
		}
		uid, err1 := strconv.Atoi(u.Uid)
		gid, err2 := strconv.Atoi(u.Gid)
		s.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := errors.Join(err1, err2, os.Chown(s.dir, uid, gid)); err != nil {
			return err
		}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = &syscall.SysProcAttr{Credential: s.attr.Credential}, s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	s.port, err = embedded.FreePort()
	s.URL = fmt.Sprintf("postgres://bench@127.0.0.1:%d/postgres?sslmode=disable", s.port)
	return err
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Up starts the cluster, at first or after Down, and returns once it answers.
func (s *Server) Up(ctx context.Context) error {
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data(), "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories="+s.dir, "-c", "max_connections=300", "-c", "log_min_messages=fatal")
	s.cmd.SysProcAttr, s.cmd.Dir = s.attr, s.dir
	s.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel ends the cluster with the thread that started it
		defer runtime.UnlockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			_ = s.cmd.Wait()
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := pgx.Connect(ctx, s.URL)
		if err == nil {
			return c.Close(ctx)
		}
		if time.Now().After(until) || ctx.Err() != nil {
			s.Down()
			return fmt.Errorf("postgres does not answer: %w", err)
		}
	}
}

// Down ends the cluster by its fast shutdown. The data stays.
func (s *Server) Down() {
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	<-s.ended
}

// Stop ends the cluster, and removes it.
func (s *Server) Stop() {
	s.Down()
	_ = os.RemoveAll(s.dir)
}

// PID is the process ID of the postmaster.
func (s *Server) PID() int { return s.cmd.Process.Pid }
