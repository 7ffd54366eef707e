package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestConfig_isAFileOrAPipe(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	large := s.file("large.yaml", "# "+strings.Repeat("x", 17<<20))
	for _, args := range [][]string{{"schedules", "list", "-c"}, {"serve", "-c"}, {"schedules", "apply"}, {"enqueue", "--file"}} {
		ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
		for name, want := range map[string]string{"/dev/zero": "is neither a file nor a pipe", t.TempDir(): "is a directory", large: "larger than"} {
			if _, err := os.Stat(name); err != nil {
				continue
			}
			r := runWith(ctx, s.env(), "", append(args, name)...)
			if want == "larger than" && args[0] == "enqueue" {
				want = "longer than any task" // a file of tasks may be of any length
			}
			s.failed(r, exitAsked, append(args, name), want)
		}
		done()
	}
	r := s.run("# "+strings.Repeat("x", 17<<20), "schedules", "apply", "-")
	s.failed(r, exitAsked, "stdin", "larger than 16 MiB")
}

func TestConfig_mayComeThroughAPipe(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("pipes are named otherwise here")
	}
	s := newShell(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString("namespace: " + s.ns + "\n")
		_ = w.Close()
	}()
	if got := runWith(t.Context(), testEnv("ONBEAT_REDIS_URL", s.url), "", "schedules", "list", "-c", fmt.Sprintf("/dev/fd/%d", r.Fd())); got.code != 0 {
		t.Errorf("%+v", got)
	}
}

func TestServe_keepsItsSchedulesWhenTheConfigBecomesABomb(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "c.yaml")
	good := "redis: {url: '" + s.url + "'}\nnamespace: " + s.ns + "\nschedules:\n  - {name: tick, every: 1h, task: echo}\n"
	if err := os.WriteFile(name, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProgram(t, dir, nil, "serve", "-c", name)
	awaitText(p, "starting")
	if err := os.WriteFile(name, []byte(bomb(9)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Process.Signal(hangup); err != nil {
		t.Fatal(err)
	}
	awaitText(p, "kept the old schedules")
	p.interrupt()
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d", code)
	}
}

// bomb is a config with a list of nine aliases of a list of nine aliases, and so on. Written out, it would take gigabytes.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("schedules:\n  - name: a\n    every: 1s\n    task: echo\n    payload:\n      a0: &a0 x\n")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&b, "      a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}

// awaitText waits for a text on stderr.
func awaitText(p *program, text string) {
	p.Helper()
	for end := time.Now().Add(patience); !strings.Contains(p.errs.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("never said %q", text)
		}
	}
}
