package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// binary is the program under test, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "onbeat-network-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "onbeat")
	build := exec.Command("go", "build", "-o", binary, "./cmd/onbeat")
	build.Dir, build.Stderr = filepath.Join("..", ".."), os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the program:", err)
		os.Exit(1)
	}
	testredis.Main(m)
}

// every is the interval of the schedules.
const every = 200 * time.Millisecond

// size is all in a soak, ONBEAT_SOAK=1, and few in CI.
func size[T int | time.Duration](few, all T) T {
	if os.Getenv("ONBEAT_SOAK") == "1" {
		return all
	}
	return few
}

// world is one namespace on a Redis of its own.
type world struct {
	*testing.T
	ns, url, addr, dir string
	rec                *recorder
}

func newWorld(t *testing.T) *world {
	t.Helper()
	srv := testredis.Private(t)
	return &world{T: t, ns: testredis.Namespace(t), url: srv.URL(), addr: srv.Addr(), dir: t.TempDir(), rec: newRecorder(t)}
}

// node is one running `onbeat serve`, and its way to Redis.
type node struct {
	*link
	w      *world
	name   string
	cmd    *exec.Cmd
	log    logBuffer
	exited chan struct{}
}

// logBuffer keeps what a process logs.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// serve starts an instance behind a link of its own; name is its release. It is killed when the test ends, and its log
// shown if the test failed.
func (w *world) serve(name, lease string) *node {
	w.Helper()
	n := &node{link: newLink(w.T, name, w.addr), w: w, name: name, exited: make(chan struct{})}
	config := fmt.Sprintf("redis: {url: %q}\nnamespace: %s\nrelease: %s\nconcurrency: 20\nlease: %s\nschedules:\n",
		"redis://"+n.proxy.Listen+"/0", w.ns, name, lease)
	for _, beat := range []string{"a", "b"} {
		config += fmt.Sprintf("  - {name: %s, every: %s, task: http, payload: {url: %q}}\n", beat, every, w.rec.URL+"/"+beat)
	}
	path := filepath.Join(w.dir, name+".yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		w.Fatal(err)
	}
	n.cmd = exec.Command(binary, "serve", "--config", path)
	n.cmd.Stdout, n.cmd.Stderr = &n.log, &n.log
	n.cmd.SysProcAttr = dieWithParent()
	if err := n.cmd.Start(); err != nil {
		w.Fatal(err)
	}
	go func() {
		_ = n.cmd.Wait()
		close(n.exited)
	}()
	w.Cleanup(func() {
		_ = n.cmd.Process.Kill()
		<-n.exited
		if w.Failed() {
			w.Logf("%s said:\n%s", name, n.log.String())
		}
	})
	return n
}

// says counts how often it has logged a message.
func (n *node) says(message string) int {
	return strings.Count(n.log.String(), `"message":"`+message+`"`)
}

// said waits until it has logged a message so often.
func (n *node) said(message string, times int) {
	n.w.Helper()
	testredis.Eventually(n.w, 20*time.Second, func() bool { return n.says(message) >= times }, "%s never said %q %d times", n.name, message, times)
}

// stop sends SIGTERM and waits for a clean exit.
func (n *node) stop() {
	n.w.Helper()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		n.w.Fatal(err)
	}
	select {
	case <-n.exited:
	case <-time.After(40 * time.Second):
		n.w.Fatalf("%s does not exit", n.name)
	}
	if code := n.cmd.ProcessState.ExitCode(); code != 0 {
		n.w.Errorf("%s: exit %d", n.name, code)
	}
}

// run runs a command of the program, on the straight way to Redis.
func (w *world) run(args ...string) (code int, stdout, stderr string) {
	w.Helper()
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "ONBEAT_REDIS_URL="+w.url, "ONBEAT_NAMESPACE="+w.ns)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("onbeat %v: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// long enqueues a task that takes so long, and waits until it has begun.
func (w *world) long(id string, takes time.Duration) arrival {
	w.Helper()
	code, out, errs := w.run("enqueue", "http", "--id", id, "--payload", fmt.Sprintf(`{"url":%q}`, w.rec.URL+"/long?for="+takes.String()))
	if code != 0 {
		w.Fatalf("enqueue: exit %d: %s%s", code, out, errs)
	}
	testredis.Eventually(w, 20*time.Second, func() bool { return len(w.rec.task(id)) == 1 }, "%s does not begin", id)
	return w.rec.task(id)[0]
}

// grow waits until n more requests have arrived.
func (w *world) grow(n int, what string) {
	w.Helper()
	seen := w.rec.count()
	testredis.Eventually(w, 30*time.Second, func() bool { return w.rec.count() >= seen+n }, "%s", what)
}
