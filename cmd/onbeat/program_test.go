package main

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// asProgram makes the test's own binary the program. Processes that it starts from its own binary, such as the instances of a
// demo, are the program too.
const asProgram = "BE_THE_PROGRAM"

func init() {
	if os.Getenv(asProgram) == "1" {
		main()
	}
}

// patience is how long a test waits for what must come. A busy machine takes long; only a failure takes all of it.
const patience = 3 * time.Minute

// program is a run of the program in a process of its own.
type program struct {
	*testing.T
	*exec.Cmd
	out, errs lockedBuffer
	exited    chan struct{}
}

// startProgram starts the program in a folder, with additional variables. The end of the test kills it.
func startProgram(t *testing.T, dir string, env []string, args ...string) *program {
	t.Helper()
	p := newProgram(t, dir, env, args...)
	p.start()
	return p
}

// newProgram returns a program that is not started yet.
func newProgram(t *testing.T, dir string, env []string, args ...string) *program {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{T: t, Cmd: exec.Command(exe, args...), exited: make(chan struct{})}
	p.Dir, p.Stdout, p.Stderr = dir, &p.out, &p.errs
	p.WaitDelay = 5 * time.Second // its children may outlive it, and keep its stdout open
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ONBEAT_") && !strings.HasPrefix(v, "GOCOVERDIR=") {
			p.Env = append(p.Env, v)
		}
	}
	p.Env = append(append(p.Env, asProgram+"=1"), env...)
	return p
}

func (p *program) start() {
	p.Helper()
	if err := p.Start(); err != nil {
		p.Fatal(err)
	}
	go func() {
		_ = p.Cmd.Wait()
		close(p.exited)
	}()
	p.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.exited
		if p.Failed() {
			p.Logf("%v said:\n%s%s", p.Args[1:], p.out.String(), p.errs.String())
		}
	})
}

func (p *program) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// exit waits until the program has ended, and returns its exit code.
func (p *program) exit(limit time.Duration) int {
	p.Helper()
	select {
	case <-p.exited:
	case <-time.After(limit):
		p.Fatalf("still running after %s", limit)
	}
	return p.ProcessState.ExitCode()
}

// says waits until the program has printed a text, and returns its whole output.
func (p *program) says(text string) string {
	p.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if out := p.out.String(); strings.Contains(out, text) {
			return out
		}
	}
	p.Fatalf("never said %q", text)
	return ""
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
