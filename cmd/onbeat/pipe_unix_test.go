//go:build unix

package main

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A command that waits for the writer of a pipe ends with the first signal.
func TestPipe_withoutAWriterEndsWithASignal(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	name := filepath.Join(t.TempDir(), "ff")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"enqueue", "http", "--payload", "@" + name}, {"enqueue", "--file", name}, {"check", name}, {"schedules", "apply", name}, {"instances", "-c", name},
	} {
		// The program has begun to wait a second later; on a busy machine a signal may come before its first line, and kill it.
		for wait := time.Second; ; wait *= 2 {
			p := startProgram(t, t.TempDir(), []string{"ONBEAT_REDIS_URL=" + s.url, "ONBEAT_NAMESPACE=" + s.ns}, args...)
			time.Sleep(wait)
			_ = p.Process.Signal(syscall.SIGTERM)
			code := p.exit(10 * time.Second)
			if code == -1 && wait < 30*time.Second {
				continue
			}
			if code != exitFailed || p.errs.String() != "onbeat: interrupted\n" {
				t.Errorf("%q: exit %d: %s", args, code, p.errs.String())
			}
			break
		}
	}
}
