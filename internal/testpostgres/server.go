package testpostgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	_ "github.com/onbeat/onbeat/postgres"
)

// startTimeout is how long a server may take to start, and to recover after it was killed.
const startTimeout = time.Minute

// Server is a PostgreSQL. Its methods fail the test if they fail; call them from the test's own goroutine.
type Server struct {
	t    testing.TB
	bin  string
	dir  string // the home of the socket and of the data
	data string
	port int
	args []string
	cmd  *exec.Cmd
	gone chan struct{}
	made int
}

// Private starts a PostgreSQL for this test alone, and removes it when the test ends. The settings are those of
// postgresql.conf, such as "max_connections=20". Unlike [Database], it syncs what it commits to the disk.
func Private(t testing.TB, settings ...string) *Server {
	t.Helper()
	return On(t, "", settings...)
}

// On is [Private] with the data in an existing empty folder, such as a file system of a small size. "" is a folder of its own.
func On(t testing.TB, data string, settings ...string) *Server {
	t.Helper()
	s, err := newServer(t, data, settings)
	if err != nil {
		missing(t, err)
	}
	t.Cleanup(s.remove)
	return s
}

// missing ends a test that has no PostgreSQL.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("ONBEAT_REQUIRE_REAL") == "1" || !errors.Is(err, errMissing) {
		t.Fatal("testpostgres: ", err)
	}
	t.Skip("testpostgres: ", err)
}

var errMissing = errors.New("PostgreSQL's initdb is not installed")

// find returns the folder of the newest initdb.
func find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path), nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errMissing
	}
	major := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })), nil
}

func newServer(t testing.TB, data string, settings []string) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "onbeat-postgres-")
	if err != nil {
		return nil, err
	}
	s := &Server{t: t, bin: bin, dir: dir, data: data, args: []string{"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + dir}}
	for _, setting := range settings {
		s.args = append(s.args, "-c", setting)
	}
	if err := s.make(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.start(); err != nil {
		s.end(syscall.SIGKILL)
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// make makes the cluster.
func (s *Server) make() error {
	if s.data == "" {
		s.data = filepath.Join(s.dir, "data")
		if err := os.Mkdir(s.data, 0o700); err != nil {
			return err
		}
	}
	for _, dir := range []string{s.dir, s.data} {
		if err := give(dir); err != nil {
			return err
		}
	}
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", s.data, "-U", "test", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = asChild(), s.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// start starts the server and waits until it answers. Its port is taken anew if another process was faster.
func (s *Server) start() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var why error
	for ctx.Err() == nil {
		if s.port == 0 {
			var err error
			if s.port, err = freePort(); err != nil {
				return err
			}
		}
		var log bytes.Buffer
		s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), append([]string{"-D", s.data, "-p", strconv.Itoa(s.port)}, s.args...)...)
		s.cmd.SysProcAttr, s.cmd.Dir, s.cmd.Stderr = asChild(), s.dir, &log
		if err := s.cmd.Start(); err != nil {
			return err
		}
		gone := make(chan struct{})
		s.gone = gone
		go func(cmd *exec.Cmd) {
			_ = cmd.Wait()
			close(gone)
		}(s.cmd)
		if why = s.answers(ctx); why == nil {
			return nil
		}
		<-gone // children of one that was killed may hold its memory for a moment: try again
		why = fmt.Errorf("%w; it printed %s", why, bytes.TrimSpace(log.Bytes()))
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("postgres does not start: %w", why)
}

var errEnded = errors.New("it ended")

// answers waits until the server answers. It returns an error if the server ends before.
func (s *Server) answers(ctx context.Context) error {
	for {
		err := s.exec(ctx, "select 1")
		if err == nil {
			return nil
		}
		select {
		case <-s.gone:
			return errEnded
		case <-ctx.Done():
			s.end(syscall.SIGKILL)
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func (s *Server) end(sig syscall.Signal) {
	if s.cmd == nil || s.cmd.Process == nil || s.gone == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	<-s.gone
}

func (s *Server) remove() {
	s.end(syscall.SIGINT) // its fast shutdown
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Errorf("testpostgres: %v", err)
	}
}

// Kill kills the server, as a crash would.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop stops the server cleanly, and hangs up on its clients.
func (s *Server) Stop() { s.end(syscall.SIGINT) }

// Freeze stops the server with all its sessions, until Thaw: it answers nothing, and hangs up on nobody. It works on Linux.
func (s *Server) Freeze() { s.freeze(true) }

// Thaw lets a server that was frozen go on.
func (s *Server) Thaw() { s.freeze(false) }

func (s *Server) freeze(stop bool) {
	s.t.Helper()
	if err := freeze(s.cmd.Process.Pid, stop); err != nil {
		s.t.Fatal("testpostgres: ", err)
	}
}

// Start starts the server after Kill or Stop, where it was.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.start(); err != nil {
		s.t.Fatal("testpostgres: ", err)
	}
}

// URL is where a database of the server is.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://test@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Database makes an empty database, and returns its URL.
func (s *Server) Database() string {
	s.t.Helper()
	url, err := s.newDatabase()
	if err != nil {
		s.t.Fatal("testpostgres: ", err)
	}
	return url
}

func (s *Server) newDatabase() (string, error) {
	s.made++
	name := "test" + strconv.Itoa(s.made)
	return s.URL(name), s.exec(context.Background(), "create database "+name)
}

func (s *Server) exec(ctx context.Context, sql string) error {
	c, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	_, err = c.Exec(ctx, sql)
	return err
}
