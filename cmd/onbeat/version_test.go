package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A program that the go command builds in a clone says which version, commit, date and Go it is of.
func TestVersion_saysWhatTheProgramWasBuiltFrom(t *testing.T) {
	t.Parallel()
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", "../.."}, args...)...).Output()
		if err != nil {
			t.Skipf("this is no clone of a git repository: %v", err)
		}
		return strings.TrimSpace(string(out))
	}
	commit, date := git("rev-parse", "HEAD"), git("log", "-1", "--format=%cI")
	program := filepath.Join(t.TempDir(), "onbeat")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", "-X main.version=v9.8.7", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds it, so that nothing is compiled twice
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), program, "version", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version, Revision, Go string
		Date                  time.Time
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	made, err := time.Parse(time.RFC3339, date)
	if err != nil {
		t.Fatal(err)
	}
	if got.Version != "v9.8.7" || strings.TrimSuffix(got.Revision, "+") != commit[:12] || !got.Date.Equal(made) || got.Go != runtime.Version() {
		t.Errorf("it says %s, and was built from %s of %s", out, commit, date)
	}
	text, err := exec.CommandContext(t.Context(), program, "version").Output()
	for _, part := range []string{"v9.8.7", commit[:12], got.Date.Format(time.RFC3339), runtime.Version()} {
		if err != nil || !strings.Contains(string(text), part) {
			t.Errorf("%q lacks %q: %v", text, part, err)
		}
	}
}
