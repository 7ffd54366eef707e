//go:build unix

package main

import (
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// locked starts a shell script under the lock "job", in a process of its own, and waits until it says ready.
func (s *shell) locked(script string, flags ...string) *program {
	s.Helper()
	args := append(append([]string{"lock", "run"}, flags...), "job", "--", "sh", "-c", script)
	p := startProgram(s.T, s.TempDir(), []string{"ONBEAT_REDIS_URL=" + s.url, "ONBEAT_NAMESPACE=" + s.ns}, args...)
	p.says("ready")
	leader := p.pid()
	s.Cleanup(func() { _ = syscall.Kill(-leader, syscall.SIGKILL) }) // if it was not ended
	return p
}

// on is a script that says what signal it got and goes on.
func on(signals ...string) string {
	var b strings.Builder
	for _, name := range signals {
		b.WriteString("trap 'echo got " + name + "' " + name + "; ")
	}
	return b.String()
}

// loops says ready, and its PID.
const loops = `echo ready $$; while :; do sleep 0.05; done`

// pid is what loops said.
func (p *program) pid() int {
	p.Helper()
	fields := strings.Fields(p.out.String())
	n, err := strconv.Atoi(fields[1])
	if err != nil {
		p.Fatal(err)
	}
	return n
}

func (p *program) gone(pid int) {
	p.Helper()
	testredis.Eventually(p.T, 20*time.Second, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, "process %d is gone", pid)
}

func TestLockRun_forwardsSignals(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := s.locked(on("HUP", "INT", "TERM", "USR1", "USR2") + "trap 'exit 5' QUIT; " + loops)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM} {
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		p.says("got " + map[syscall.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGTERM: "TERM",
			syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2"}[sig])
	}
	testredis.Eventually(t, 20*time.Second, func() bool { return strings.Count(p.out.String(), "got TERM") == 2 }, "the second SIGTERM")
	if err := p.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(20 * time.Second); code != 5 {
		t.Errorf("exit %d", code)
	}
	s.free("job")
}

func TestLockRun_aSignalEndsTheWaiting(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.holds("job")
	p := startProgram(t, t.TempDir(), []string{"ONBEAT_REDIS_URL=" + s.url, "ONBEAT_NAMESPACE=" + s.ns}, "lock", "run", "job", "--", "echo", "ran")
	testredis.Eventually(t, 20*time.Second, func() bool {
		return s.rdb.ZCard(t.Context(), strings.TrimSuffix(s.lockKey("job"), "lock")+"wait").Val() == 1
	}, "it waits")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(20 * time.Second); code != 128+15 || p.out.String() != "" {
		t.Errorf("exit %d, %q", code, p.out.String())
	}
}

func TestLockRun_endsTheCommandWhenTheLockIsLost(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := s.locked(on("TERM")+loops, "--ttl", "1s", "--grace", "200ms")
	s.rdb.Del(t.Context(), s.lockKey("job"))
	if code := p.exit(20 * time.Second); code != exitLost {
		t.Errorf("exit %d", code)
	}
	if out := p.out.String(); !strings.Contains(out, "got TERM") { // it did not heed that, and was killed
		t.Errorf("it said %q", out)
	}
	if errs := p.errs.String(); !strings.Contains(errs, "lock is lost") {
		t.Errorf("onbeat said %q", errs)
	}
	p.gone(p.pid())
}

func TestLockRun_killedTakesTheCommandAlong(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a child with its parent")
	}
	s := newShell(t)
	p := s.locked(loops)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.gone(p.pid())
}
