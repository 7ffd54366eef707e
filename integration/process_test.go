package integration

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
	dir, err := os.MkdirTemp("", "onbeat-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "onbeat")
	build := exec.Command("go", "build", "-o", binary, "../cmd/onbeat")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the program:", err)
		os.Exit(1)
	}
	testredis.Main(m)
}

// world is one namespace on a Redis, and the processes that a test starts in it.
type world struct {
	*testing.T
	ns, url string
	rec     *recorder
	dir     string
}

// newWorld uses the shared real Redis.
func newWorld(t *testing.T) *world {
	t.Helper()
	testredis.Real(t)
	return worldOn(t, testredis.URL(t))
}

func worldOn(t *testing.T, url string) *world {
	t.Helper()
	return &world{T: t, ns: testredis.Namespace(t), url: url, rec: newRecorder(t), dir: t.TempDir()}
}

// config writes a config file: the head that all share, and the schedules.
func (w *world) config(name, head string, schedules ...string) string {
	w.Helper()
	path := filepath.Join(w.dir, name)
	text := fmt.Sprintf("redis: {url: %q}\nnamespace: %s\n%s\nschedules:\n%s", w.url, w.ns, head, strings.Join(schedules, ""))
	if len(schedules) == 0 {
		text = strings.TrimSuffix(text, "schedules:\n")
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// beat is a schedule that calls the recorder.
func (w *world) beat(name string, every time.Duration, more ...string) string {
	s := fmt.Sprintf("  - name: %s\n    every: %s\n    task: http\n    payload: {url: %q}\n", name, every, w.rec.URL+"/"+name)
	for _, line := range more {
		s += "    " + line + "\n"
	}
	return s
}

// process is one running `onbeat serve`.
type process struct {
	*exec.Cmd
	w      *world
	name   string
	log    logBuffer
	exited chan error
	gone   bool
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

// serve starts an instance. It is killed when the test ends, and its log shown if the test failed.
func (w *world) serve(name, config string, args ...string) *process {
	w.Helper()
	p := &process{w: w, name: name, exited: make(chan error, 1)}
	p.Cmd = exec.Command(binary, append([]string{"serve", "--config", config}, args...)...)
	p.Stdout, p.Stderr = &p.log, &p.log
	p.SysProcAttr = dieWithParent()
	if err := p.Start(); err != nil {
		w.Fatal(err)
	}
	go func() { p.exited <- p.Wait() }()
	w.Cleanup(func() {
		if !p.gone {
			_ = p.Process.Signal(syscall.SIGCONT)
			_ = p.Process.Kill()
			<-p.exited
		}
		if w.Failed() {
			w.Logf("%s said:\n%s", name, p.log.String())
		}
	})
	return p
}

// said waits until a process has logged a message.
func (p *process) said(message string) {
	p.w.Helper()
	testredis.Eventually(p.w, 20*time.Second, func() bool {
		return strings.Contains(p.log.String(), `"message":"`+message+`"`)
	}, "%s never said %q", p.name, message)
}

// signal sends a signal.
func (p *process) signal(s os.Signal) {
	p.w.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.w.Fatalf("%s: %v", p.name, err)
	}
}

// stop sends SIGTERM and waits for a clean exit.
func (p *process) stop() {
	p.w.Helper()
	p.signal(syscall.SIGTERM)
	if err := p.wait(); err != nil {
		p.w.Errorf("%s did not exit cleanly: %v", p.name, err)
	}
}

// kill sends SIGKILL.
func (p *process) kill() {
	p.w.Helper()
	p.signal(syscall.SIGKILL)
	_ = p.wait()
}

func (p *process) wait() error {
	p.w.Helper()
	select {
	case err := <-p.exited:
		p.gone = true
		return err
	case <-time.After(40 * time.Second):
		p.w.Fatalf("%s does not exit:\n%s", p.name, p.log.String())
		return nil
	}
}

// run runs a command of the program and returns its exit code, stdout and stderr.
func (w *world) run(stdin string, args ...string) (code int, stdout, stderr string) {
	w.Helper()
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "ONBEAT_REDIS_URL="+w.url, "ONBEAT_NAMESPACE="+w.ns)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("onbeat %v: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// must runs a command that is to succeed and returns its stdout.
func (w *world) must(args ...string) string {
	w.Helper()
	code, out, errs := w.run("", args...)
	if code != 0 {
		w.Fatalf("onbeat %v: exit %d: %s", args, code, errs)
	}
	return out
}
