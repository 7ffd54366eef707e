package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
)

// full is a stdout on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
}

func TestStdout_thatCannotBeWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("enqueue", "echo", "--id", "one", "--in", "1h")
	s.must("schedules", "apply", s.file("s.yaml", "[{name: a, every: 1h, task: echo}]\n"))
	for _, args := range []string{
		"audit", "tasks list", "tasks show one", "tasks cancel one", "schedules list", "schedules show a", "schedules pause a",
		"doctor", "instances", "events", "version", "completion bash", "preview --every 1h", "enqueue echo", "--help", "tasks list --help",
	} {
		for _, more := range []string{"", " --json"} {
			if more != "" && (strings.Contains(args, "--help") || args == "tasks cancel one" || args == "completion bash") {
				continue // it has no --json, or works only once
			}
			var errs bytes.Buffer
			code := run(t.Context(), strings.Fields(args+more), s.env(), strings.NewReader(""), full{}, &errs)
			s.failed(ran{code, "", unattended.ReplaceAllString(errs.String(), "")}, exitFailed, args+more, "cannot write the output: no space left on device")
		}
	}
	if page := s.must("tasks", "list"); strings.Count(page, "echo") != 2 {
		t.Errorf("what was asked for was not done:\n%s", page)
	}
}

func TestStdout_doesNotHideWhatElseWentWrong(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	var errs bytes.Buffer
	code := run(t.Context(), []string{"schedules", "show", "none"}, s.env(), strings.NewReader(""), full{}, &errs)
	s.failed(ran{code, "", errs.String()}, exitFailed, "show", `schedule "none": not found`)
}

// unreadPipe returns a pipe whose reader reads this many bytes and leaves.
func unreadPipe(t *testing.T, read int64) *os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	go func() {
		_, _ = io.CopyN(io.Discard, r, read)
		_ = r.Close()
	}()
	return w
}

// closed waits until the reader of a pipe has left.
func closed(t *testing.T, w *os.File) *os.File {
	t.Helper()
	testredis.Eventually(t, 30*time.Second, func() bool { return unread(w, 10*time.Millisecond) }, "the pipe is still read")
	return w
}

func TestStdout_aClosedPipeIsAFailureWithoutAWord(t *testing.T) {
	t.Parallel()
	p := newProgram(t, t.TempDir(), nil, "version")
	p.Stdout = closed(t, unreadPipe(t, 0))
	p.start()
	if code := p.exit(20 * time.Second); code != exitFailed || p.errs.String() != "" {
		t.Errorf("exit %d: %q", code, p.errs.String())
	}
}

func TestEvents_followingEndsWithItsReader(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.must("schedules", "apply", s.file("s.yaml", "[{name: a, every: 1h, task: echo}]\n"))
	p := newProgram(t, t.TempDir(), []string{"ONBEAT_REDIS_URL=" + s.url, "ONBEAT_NAMESPACE=" + s.ns}, "events", "-f")
	p.Stdout = unreadPipe(t, 1)
	p.start()
	if code := p.exit(20 * time.Second); code != exitFailed || p.errs.String() != "" {
		t.Errorf("exit %d: %q", code, p.errs.String())
	}
}

func TestServe_goesOnWhenItsLogIsNotRead(t *testing.T) {
	t.Parallel()
	testredis.Real(t)
	s, rec := newShell(t), newRecorder(t)
	p := newProgram(t, t.TempDir(), nil, "serve", "-c", s.file("onbeat.yaml", configText(s.url, s.ns, rec.URL, "a")))
	pipe := unreadPipe(t, 1)
	p.Stdout, p.Stderr = pipe, pipe
	p.start()
	closed(t, pipe)
	before := rec.count("")
	testredis.Eventually(t, patience, func() bool { return rec.count("") > before+5 }, "nothing runs")
	p.signal(syscall.SIGTERM)
	if code := p.exit(20 * time.Second); code != exitFine {
		t.Errorf("exit %d", code)
	}
	if out := s.must("instances"); !strings.Contains(out, "no instances") {
		t.Errorf("it did not resign:\n%s", out)
	}
}
