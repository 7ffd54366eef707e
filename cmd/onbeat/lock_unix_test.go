//go:build unix

package main

import (
	"io"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// underLock prepares a shell script under the lock "job", in a process of its own without a terminal. It does not start it.
func (s *shell) underLock(script string, flags ...string) *program {
	s.Helper()
	args := append(append([]string{"lock", "run"}, flags...), "job", "--", "sh", "-c", script)
	p := newProgram(s.T, s.TempDir(), []string{"ONBEAT_REDIS_URL=" + s.url, "ONBEAT_NAMESPACE=" + s.ns}, args...)
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return p
}

// locked starts a shell script under the lock "job", and waits until it says ready.
func (s *shell) locked(script string, flags ...string) *program {
	s.Helper()
	return s.ready(s.underLock(script, flags...))
}

func (s *shell) ready(p *program) *program {
	s.Helper()
	p.start()
	p.says("ready")
	leader := p.pid()
	s.Cleanup(func() { _ = syscall.Kill(-leader, syscall.SIGKILL) }) // if it was not ended
	return p
}

// on returns a script that prints which signal it got and goes on.
func on(signals ...string) string {
	var b strings.Builder
	for _, name := range signals {
		b.WriteString("trap 'echo got " + name + "' " + name + "; ")
	}
	return b.String()
}

// loops prints ready and its PID.
const loops = `echo ready $$; while :; do sleep 0.05; done`

// pid returns the PID that loops printed.
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
	testredis.Eventually(p.T, patience, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, "process %d is gone", pid)
}

func TestLockRun_forwardsSignals(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := s.locked(on("HUP", "INT", "TERM", "USR1", "USR2") + "trap 'exit 5' QUIT; " + loops)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM} {
		if signal.Ignored(sig) { // by who started the tests, as nohup does: no shell below them can catch it
			continue
		}
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		p.says("got " + map[syscall.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGINT: "INT", syscall.SIGTERM: "TERM",
			syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2"}[sig])
	}
	testredis.Eventually(t, patience, func() bool { return strings.Count(p.out.String(), "got TERM") == 2 }, "the second SIGTERM")
	if err := p.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(20 * time.Second); code != 5 {
		t.Errorf("exit %d", code)
	}
	s.free("job")
}

// A shell makes a background command of a script ignore ^C. lock run keeps ignoring it then.
func TestLockRun_ignoresWhatItWasStartedToIgnore(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := s.underLock("trap 'exit 6' USR1; " + loops)
	p.Args = append([]string{"sh", "-c", `trap "" INT; exec "$@"`, "sh", p.Path}, p.Args[1:]...)
	p.Path = "/bin/sh"
	s.ready(p)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGUSR1} {
		if err := p.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if code := p.exit(20 * time.Second); code != 6 {
		t.Errorf("exit %d", code)
	}
}

// On a terminal the command may read from it (a password for ssh), and ^Z stops both processes, wherever stdin comes from.
func TestLockRun_leavesTheTerminalToTheCommand(t *testing.T) {
	t.Parallel()
	script, err := exec.LookPath("script")
	if err != nil || runtime.GOOS != "linux" {
		t.Skip("it takes the script(1) of Linux to have a terminal")
	}
	s := newShell(t)
	p := s.underLock(`echo ready; read line </dev/tty; echo "read $line"`, "--at-most", "10s")
	p.Args = []string{"script", "-qec", p.Path + ` lock run job --at-most 10s -- sh -c '` + p.Args[len(p.Args)-1] + `' </dev/null`, "/dev/null"}
	p.Path = script
	stdin, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	p.start()
	p.says("ready")
	if _, err := io.WriteString(stdin, "word\n"); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(20 * time.Second); code != 0 || !strings.Contains(p.out.String(), "read word") {
		t.Errorf("exit %d, %q", code, p.out.String())
	}
}

// If the command has ended and Redis does not answer, a signal is for us.
func TestLockRun_aSignalEndsTheRelease(t *testing.T) {
	t.Parallel()
	srv := testredis.Private(t)
	s := newShell(t)
	s.url = srv.URL()
	p := s.locked("trap 'exit 4' USR1; " + loops)
	srv.Pause()
	defer srv.Resume()
	if err := p.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	p.gone(p.pid())
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(5 * time.Second); code != 4 {
		t.Errorf("exit %d", code)
	}
	if errs := p.errs.String(); !strings.Contains(errs, "release") {
		t.Errorf("onbeat said %q", errs)
	}
}

func TestLockRun_aSignalEndsTheWaiting(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.holds("job")
	p := startProgram(t, t.TempDir(), []string{"ONBEAT_REDIS_URL=" + s.url, "ONBEAT_NAMESPACE=" + s.ns}, "lock", "run", "job", "--", "echo", "ran")
	testredis.Eventually(t, patience, func() bool {
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
	p := s.locked(on("TERM")+loops, "--ttl", "6s", "--grace", "2s")
	s.rdb.Del(t.Context(), s.lockKey("job"))
	if code := p.exit(20 * time.Second); code != exitLost {
		t.Errorf("exit %d", code)
	}
	if out := p.out.String(); !strings.Contains(out, "got TERM") { // it ignored SIGTERM, and was killed
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
