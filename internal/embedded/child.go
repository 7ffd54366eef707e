package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
)

// attempts is how many free ports are tried. Another process can take a port after we checked it and before Redis listens
// on it.
const attempts = 5

// startChild starts the program at path and waits until it answers.
func startChild(ctx context.Context, path string, opts Options) (*Server, error) {
	lock, err := lockDir(opts.Dir)
	if err != nil {
		return nil, err
	}
	for i := 1; ; i++ {
		s, err := tryChild(ctx, path, opts, lock)
		if err == nil {
			return s, nil
		}
		if opts.Port != 0 || i == attempts || !errors.Is(err, errPortTaken) {
			lock.release()
			return nil, fmt.Errorf("embedded Redis: %w%s", err, portHint(opts.Port))
		}
	}
}

func tryChild(ctx context.Context, path string, opts Options, lock *dirLock) (*Server, error) {
	port := opts.Port
	if port == 0 {
		var err error
		if port, err = FreePort(); err != nil {
			return nil, err
		}
	} else if err := probe(port); err != nil {
		return nil, fmt.Errorf("listen on port %d: %w", port, err)
	}
	out := &output{log: opts.Log}
	password := newPassword(opts) // new for each try: by now another process may listen on the port
	cmd := exec.Command(path, args(port, lock, password != "", opts.Args)...)
	if password != "" { // all users of this machine can read a command line
		cmd.Stdin = strings.NewReader("requirepass " + password + "\n")
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second // a fork that rewrites the file may hold the pipe
	cmd.SysProcAttr = childAttr()
	cmd.ExtraFiles = lock.inherit()

	exited, err := spawn(cmd)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	s := newServer(Child, func() error { return stopChild(cmd.Process, exited) })
	s.dir = opts.Dir
	s.addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	s.pid, s.password = cmd.Process.Pid, password
	lock.note(s.pid)

	bound := out.saidReady
	if slices.Contains(opts.Args, "--loglevel") || slices.Contains(opts.Args, "--logfile") {
		bound = func() bool { return true } // its output may say nothing
	}
	about, err := awaitReady(ctx, s, exited, bound)
	if err != nil {
		_ = cmd.Process.Kill()
		<-exited
		if out.says("Address already in use", "Failed listening") {
			err = errPortTaken
		}
		return nil, fmt.Errorf("%s on port %d: %w%s", filepath.Base(path), port, err, out.tail())
	}
	s.name = about.name()

	go func() {
		<-exited
		lock.release()
		s.ended(fmt.Errorf("%w: %s%s", ErrDied, cmd.ProcessState, out.tail()))
	}()
	s.stop = func() error {
		err := stopChild(cmd.Process, exited)
		<-s.done
		return err
	}
	return s, nil
}

// errPortTaken is the error for a port that was free when it was checked, or for the cluster bus port, which is not
// checked.
var errPortTaken = fmt.Errorf("the port is taken by another process: %w", syscall.EADDRINUSE)

// dataFile is the name of a file that is never written. Redis would load a dump.rdb that it finds.
const dataFile = "onbeat.rdb"

// args returns the command line. Redis writes nothing to disk unless there is a directory to write to. It never evicts a
// key: a dispatcher whose tasks vanish silently is worse than one that reports a full memory.
func args(port int, lock *dirLock, fromStdin bool, more []string) []string {
	var a []string
	if fromStdin {
		a = append(a, "-") // the rest of the config is read from stdin first
	}
	a = append(a,
		"--bind", "127.0.0.1",
		"--port", strconv.Itoa(port),
		"--protected-mode", "yes",
		"--daemonize", "no",
		"--logfile", "",
		"--save", "",
		"--maxmemory-policy", "noeviction",
		"--dir", lock.path,
		"--dbfilename", dataFile,
	)
	if lock.file == nil {
		a = append(a, "--appendonly", "no")
	} else {
		a = append(a, "--appendonly", "yes", "--appendfsync", "everysec")
	}
	return append(a, more...)
}

// spawn starts cmd and returns a channel that is closed when the child has ended and was waited for.
//
// On Linux a child is killed when the thread that started it ends, not when the process does. So one goroutine keeps its
// thread for as long as the child lives.
func spawn(cmd *exec.Cmd) (exited <-chan struct{}, err error) {
	gone := make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // ProcessState says how it ended
		close(gone)
	}()
	return gone, <-started
}

func stopChild(p *os.Process, exited <-chan struct{}) error {
	if err := terminate(p); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the embedded Redis: %w", err)
	}
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	select {
	case <-exited:
		return nil
	case <-late.C:
	}
	_ = p.Kill()
	<-exited
	return fmt.Errorf("the embedded Redis did not stop within %v, so onbeat killed it", stopTimeout)
}

// FreePort returns a TCP port on 127.0.0.1 on which no process listens. It stays below the range that kernels use for
// outgoing connections. In that range, a client that redials a stopped server could end up connected to itself, and hold
// the port that the server needs to come back.
func FreePort() (int, error) {
	const low, high = 15_000, 32_000
	var last error
	for range 50 {
		port := low + rand.IntN(high-low)
		if last = probe(port); last == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d: %w", low, high, last)
}

// probe returns nil if a server can listen on the port.
func probe(port int) error {
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return ln.Close()
}

// output passes the child's output to the log, and keeps the end of it for the message that explains its death.
type output struct {
	log zerolog.Logger

	mu    sync.Mutex
	part  []byte
	lines []string
	ready bool
}

// tailLines is how much of the child's output an error repeats.
const tailLines = 8

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, p...)
	for {
		line, rest, found := bytes.Cut(o.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		if text := strings.TrimSpace(string(line)); text != "" {
			o.log.Debug().Str("line", text).Msg("redis-server")
			o.lines = append(o.lines, text)
			o.ready = o.ready || strings.Contains(text, "Ready to accept connections")
			if over := len(o.lines) - tailLines; over > 0 {
				o.lines = o.lines[over:]
			}
		}
		o.part = rest
	}
}

// saidReady reports whether the child printed that it listens.
func (o *output) saidReady() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ready
}

// says reports whether one of the texts was printed lately.
func (o *output) says(texts ...string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := strings.Join(o.lines, "\n")
	for _, text := range texts {
		if strings.Contains(all, text) {
			return true
		}
	}
	return false
}

// tail returns the end of the output, to end an error with.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.lines) == 0 {
		return ""
	}
	return "; it printed last:\n  " + strings.Join(o.lines, "\n  ")
}
