package main

import (
	"context"
	"fmt"
	"os"
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
