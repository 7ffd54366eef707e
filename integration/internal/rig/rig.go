// Package rig sets up the stage of package trial for tests: real processes of the real binary, in a namespace on a Redis of the
// tests. An error fails the test.
package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// World is one namespace on a Redis, and the processes that a test starts in it.
type World struct {
	*testing.T
	*trial.Stage
	NS string
}

// New uses the shared real Redis.
func New(t *testing.T) *World {
	t.Helper()
	testredis.Real(t)
	return On(t, testredis.URL(t))
}

// On uses the Redis at a URL.
func On(t *testing.T, url string) *World {
	t.Helper()
	ns := testredis.Namespace(t)
	stage, err := trial.NewStage(url, ns, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stage.Close)
	return &World{T: t, Stage: stage, NS: ns}
}

// Private uses a Redis of the test's own, which the test may disturb.
func Private(t *testing.T, args ...string) (*World, *testredis.Server) {
	t.Helper()
	srv := testredis.Private(t, args...)
	return On(t, srv.URL()), srv
}

// Config writes a config file: the head that all share, and the schedules.
func (w *World) Config(name, head string, schedules ...string) string {
	w.Helper()
	path, err := w.WriteConfig(name, head+"\n", schedules...)
	if err != nil {
		w.Fatal(err)
	}
	return path
}

// File writes a file.
func (w *World) File(name, text string) (path string) {
	w.Helper()
	path = filepath.Join(w.Dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	return path
}

// Beat is a schedule that calls the recorder.
func (w *World) Beat(name string, every time.Duration, more ...string) string {
	return w.Stage.Beat(name, name, every, more...)
}

// BeatTo is a schedule that calls a path of the recorder.
func (w *World) BeatTo(path, name string, every time.Duration, more ...string) string {
	return w.Stage.Beat(path, name, every, more...)
}

// Payload returns the payload of a task that calls a path of the recorder.
func (w *World) Payload(path string) string { return fmt.Sprintf(`{"url":%q}`, w.Rec.URL(path)) }

// Of returns the arrivals of one schedule.
func (w *World) Of(schedule string) []trial.Arrival {
	return slices.DeleteFunc(w.Rec.Arrivals(), func(a trial.Arrival) bool { return a.Schedule != schedule })
}

// Task returns the arrivals of one task.
func (w *World) Task(id string) []trial.Arrival {
	return slices.DeleteFunc(w.Rec.Arrivals(), func(a trial.Arrival) bool { return a.ID != id })
}

// Arrived waits for a task and returns its first arrival.
func (w *World) Arrived(id string) trial.Arrival {
	w.Helper()
	testredis.Eventually(w, 30*time.Second, func() bool { return len(w.Task(id)) > 0 }, "%s never arrived", id)
	return w.Task(id)[0]
}

// Grow waits until n more requests have arrived.
func (w *World) Grow(n int, what string) {
	w.Helper()
	seen := w.Rec.Count()
	testredis.Eventually(w, 40*time.Second, func() bool { return w.Rec.Count() >= seen+n }, "%s", what)
}

// Try runs a command of the program.
func (w *World) Try(args ...string) (code int, stdout, stderr string) {
	w.Helper()
	return w.TryAs(w.Binary(), nil, args...)
}

// TryAs runs a command of another build of the program, with more environment.
func (w *World) TryAs(path string, env []string, args ...string) (code int, stdout, stderr string) {
	w.Helper()
	ctx, done := context.WithTimeout(context.Background(), 5*time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(append(os.Environ(), w.Env()...), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("onbeat %v: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// Must runs a command, fails if the command does, and returns its stdout.
func (w *World) Must(args ...string) string {
	w.Helper()
	code, out, errs := w.Try(args...)
	if code != 0 {
		w.Fatalf("onbeat %v: exit %d: %s", args, code, errs)
	}
	return out
}

// Binary returns the program under test, which is built once.
func (w *World) Binary() string {
	w.Helper()
	path, err := binary()
	if err != nil {
		w.Fatal(err)
	}
	return path
}

var binary = sync.OnceValues(func() (string, error) { return build("onbeat", "go", "build") })

// Build builds the program otherwise. That may take minutes, so it leaves the processors to the tests that run meanwhile.
func Build(name string, flags ...string) (path string, err error) {
	return build(name, append([]string{"nice", "-n", "10", "go", "build"}, flags...)...)
}

func build(name string, command ...string) (path string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return buildIn(root, name, command...)
}

// buildIn builds the program of a tree into the folder of the test binary, which the go command removes.
func buildIn(root, name string, command ...string) (path string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path = filepath.Join(filepath.Dir(self), name)
	cmd := exec.Command(command[0], append(command[1:], "-trimpath", "-o", path, "./cmd/onbeat")...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds it, so that nothing is compiled twice
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w: %s", err, said)
	}
	return path, nil
}

// BuildTag builds the program as it was at a tag of the repository.
func BuildTag(tag string) (path string, err error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "onbeat-"+tag+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree.tar")
	for _, command := range [][]string{{"git", "-C", root, "archive", "-o", tree, tag}, {"tar", "-xf", tree, "-C", dir}} {
		if said, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w: %s", command[0], err, said)
		}
	}
	return buildIn(dir, "onbeat-"+tag, "nice", "-n", "10", "go", "build", "-buildvcs=false", "-ldflags", "-X main.version="+tag)
}

// moduleRoot returns the directory of the module.
func moduleRoot() (string, error) {
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/onbeat/onbeat").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}
