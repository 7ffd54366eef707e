package integration

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/testredis"
)

// privateWorld is a world on a Redis of its own, to which things may happen.
func privateWorld(t *testing.T, args ...string) (*world, *testredis.Server) {
	t.Helper()
	srv := testredis.Private(t, args...)
	return worldOn(t, srv.URL()), srv
}

// grow waits until n more requests have arrived.
func (w *world) grow(n int, what string) {
	w.Helper()
	seen := w.rec.count()
	testredis.Eventually(w, 30*time.Second, func() bool { return w.rec.count() >= seen+n }, "%s", what)
}

// wantBeats judges schedules with an interval of beatEvery and reports the scenario: nothing missed, duplicated or off
// the grid, by the recorder and by the audit alike. ended is when the last instance was asked to stop; slots of the
// last second before it may be left to nobody.
func (w *world) wantBeats(scenario string, ended time.Time, names []string, besides ...string) {
	w.Helper()
	got := w.judge(beatEvery, ended.Add(-time.Second), names...)
	if got.missed > 0 || got.duplicated > 0 || got.offGrid > 0 {
		w.Errorf("%d missed, %d duplicated, %d off the grid, of %d slots", got.missed, got.duplicated, got.offGrid, got.slots)
	}
	w.wantAuditAgrees(names...)
	_, lines := w.audit()
	for _, name := range names {
		if missed := lines[name].Missed; missed > 0 {
			w.Errorf("%s: the audit says that %d were missed", name, missed)
		}
		byFence(w.T, w.rec.of(name))
	}
	w.row(scenario, got, besides...)
}

// byFence fails the test if a later attempt of a slot came without a larger fence.
func byFence(t *testing.T, list []arrival) {
	t.Helper()
	for _, again := range bySlot(t, list) {
		for i := 1; i < len(again); i++ {
			if (again[i].fence > again[i-1].fence) != (again[i].attempt > again[i-1].attempt) {
				t.Errorf("%s: attempts and fences do not rise together: %s", again[i].id, describe(again))
			}
		}
	}
}

// arrived waits for a task and returns its first arrival.
func (w *world) arrived(id string) (first arrival) {
	w.Helper()
	testredis.Eventually(w, 30*time.Second, func() bool {
		for _, a := range w.rec.all() {
			if a.id == id {
				first = a
				return true
			}
		}
		return false
	}, "%s never arrived", id)
	return first
}

// serveAs starts an instance from another build of the program, with more environment.
func (w *world) serveAs(name, path string, env []string, args ...string) *process {
	w.Helper()
	p := &process{w: w, name: name, exited: make(chan error, 1)}
	p.Cmd = exec.Command(path, append([]string{"serve"}, args...)...)
	p.Env = append(os.Environ(), env...)
	p.Stdout, p.Stderr = &p.log, &p.log
	p.SysProcAttr = dieWithParent()
	if err := p.Start(); err != nil {
		w.Fatal(err)
	}
	go func() { p.exited <- p.Wait() }()
	w.Cleanup(func() {
		if !p.gone {
			_ = p.Process.Signal(syscall.SIGCONT)
			_ = p.Process.Kill()
			<-p.exited
		}
		if w.Failed() {
			w.Logf("%s said:\n%s", name, p.log.String())
		}
	})
	return p
}

// runAs runs a command of another build of the program, with more environment.
func (w *world) runAs(path string, env []string, args ...string) (code int, stdout, stderr string) {
	w.Helper()
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(append(os.Environ(), "ONBEAT_REDIS_URL="+w.url, "ONBEAT_NAMESPACE="+w.ns), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatalf("%s %v: %v", path, args, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}
