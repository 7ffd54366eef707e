// Package program runs an example as a process, for its test.
package program

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what a program should do.
const patience = time.Minute

// Build builds the program in a folder and returns its file.
func Build(t testing.TB, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", file, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds, so that nothing is compiled twice
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return file
}

// Process is a program that runs.
type Process struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan error

	mu  sync.Mutex
	out bytes.Buffer
}

// Start starts a program with some more variables in its environment. It is killed at the end of the test.
func Start(t testing.TB, file string, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{t: t, cmd: exec.Command(file, args...), done: make(chan error, 1)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(p.cmd.Args, " "), p.Said())
		}
	})
	return p
}

// Write takes what the program says.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

// Said is what the program has said so far.
func (p *Process) Said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// Says waits until the program has said a text so many times.
func (p *Process) Says(text string, times int) {
	p.t.Helper()
	for until := time.Now().Add(patience); strings.Count(p.Said(), text) < times; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) || len(p.done) > 0 {
			p.t.Fatalf("the program did not say %q %d times", text, times)
		}
	}
}

// Stop stops the program as a deployment does, and fails the test unless it ends well.
func (p *Process) Stop() {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.Ends()
}

// Ends waits for the end of the program, and fails the test unless it ends well.
func (p *Process) Ends() {
	p.t.Helper()
	select {
	case err := <-p.done:
		if err != nil {
			p.t.Fatalf("the program ended with %v", err)
		}
	case <-time.After(patience):
		p.t.Fatal("the program does not end")
	}
}

// Count is how often the program has said a text.
func (p *Process) Count(text string) int { return strings.Count(p.Said(), text) }
