package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// likeAnyUser takes the rights of root, such as to look into every process, from a program and all that it starts.
func likeAnyUser(p *program) {
	p.Helper()
	if os.Geteuid() != 0 {
		return
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		p.Skip("root may read every environment, and there is no setpriv(1) to take that away")
	}
	p.Args = append([]string{"setpriv", "--inh-caps", "-all", "--bounding-set", "-all", p.Path}, p.Args[1:]...)
	p.Path = setpriv
}

func TestServe_hidesItsEnvironmentFromCommands(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := newProgram(t, t.TempDir(), []string{"ONBEAT_REDIS_URL=" + s.url, "ONBEAT_NAMESPACE=" + s.ns, "TELLTALE=s3cret"},
		"serve", "--release", "v1", "--allow-exec")
	likeAnyUser(p)
	p.start()
	out := filepath.Join(t.TempDir(), "out")
	s.must("enqueue", "exec", "--payload", `{"command":["sh","-c","tr '\\0' '\\n' </proc/$PPID/environ >$OUT; env >>$OUT; echo END >>$OUT"],"env":{"OUT":"`+out+`"}}`)
	var seen string
	testredis.Eventually(t, patience, func() bool {
		raw, _ := os.ReadFile(out)
		seen = string(raw)
		return strings.Contains(seen, "END\n")
	}, "the command ran")
	if !strings.Contains(seen, "ONBEAT_FENCE=") || strings.Contains(seen, "TELLTALE") || strings.Contains(seen, "ONBEAT_REDIS_URL") {
		t.Error("the command saw the environment of its parent")
	}
}

func TestLockRun_hidesItsEnvironmentFromTheCommand(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	p := s.underLock(`{ tr '\0' '\n' </proc/$PPID/environ; env; } | grep -e TELLTALE -e ONBEAT_`)
	p.Env = append(p.Env, "TELLTALE=passed on")
	likeAnyUser(p)
	p.start()
	if code := p.exit(20 * time.Second); code != 0 {
		t.Errorf("exit %d", code)
	}
	out := p.out.String()
	for text, want := range map[string]int{"TELLTALE=passed on": 1, "ONBEAT_REDIS_URL": 0, "ONBEAT_NAMESPACE=" + s.ns: 1} {
		if n := strings.Count(out, text); n != want {
			t.Errorf("the command saw %q %d times, want %d", text, n, want)
		}
	}
}
