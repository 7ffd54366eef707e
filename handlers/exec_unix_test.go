//go:build unix

package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

// shell runs a script by the exec handler.
func shell(t *testing.T, ctx context.Context, cfg handlers.ExecConfig, x *task.Task, script string, pairs ...any) error {
	t.Helper()
	x.Payload = payload(append([]any{"command", []string{"/bin/sh", "-c", script}}, pairs...)...)
	return handlers.Exec(cfg).Handle(ctx, x)
}

func TestExec_runsACommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	err := shell(t, t.Context(), handlers.ExecConfig{}, &task.Task{}, `cat > out; pwd >> out; echo "$GREETING" >> out`,
		"dir", dir, "stdin", "from stdin\n", "env", map[string]string{"GREETING": "hello"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	real, _ := filepath.EvalSymlinks(dir)
	if want := "from stdin\n" + real + "\nhello\n"; string(got) != want && string(got) != "from stdin\n"+dir+"\nhello\n" {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExec_tellsTheCommandWhatRuns(t *testing.T) {
	t.Setenv("ONBEAT_REDIS_URL", "redis://:secret@host")
	t.Setenv("PASSED", "on")
	out := filepath.Join(t.TempDir(), "env")
	x := &task.Task{ID: "a@1", Type: "exec", Schedule: "a", Slot: time.UnixMilli(1), Attempt: 2, Fence: 9, Instance: "i", Release: "v1", Trace: parent}
	cfg := handlers.ExecConfig{PassEnv: []string{"PASSED", "NOT_SET_ANYWHERE"}}
	if err := shell(t, t.Context(), cfg, x, `env > "$OUT"`, "env", map[string]string{"OUT": out, "PATH": "/bin:/usr/bin"}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[k] = v
	}
	for k, want := range map[string]string{
		"ONBEAT_TASK_ID": "a@1", "ONBEAT_TASK_TYPE": "exec", "ONBEAT_SCHEDULE": "a", "ONBEAT_SLOT": "1970-01-01T00:00:00.001000000Z",
		"ONBEAT_ATTEMPT": "2", "ONBEAT_FENCE": "9", "ONBEAT_INSTANCE": "i", "ONBEAT_RELEASE": "v1", "PASSED": "on", "PATH": "/bin:/usr/bin",
		"ONBEAT_REDIS_URL": "", "NOT_SET_ANYWHERE": "",
	} {
		if got[k] != want {
			t.Errorf("%s = %q, want %q", k, got[k], want)
		}
	}
	if got["TRACEPARENT"] == "" || strings.HasPrefix(got["TRACEPARENT"], parent[:36]) { // a slot is of no trace
		t.Errorf("TRACEPARENT = %q", got["TRACEPARENT"])
	}
}

func TestExec_failsWithTheStatusAndTheEndOfStderr(t *testing.T) {
	t.Parallel()
	err := shell(t, t.Context(), handlers.ExecConfig{}, &task.Task{}, `echo fine; echo "it is" >&2; echo broken >&2; exit 3`)
	if want := "exec /bin/sh: exit status 3: it is broken"; err == nil || err.Error() != want || handlers.IsDead(err) {
		t.Fatalf("%v, want %s", err, want)
	}
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != 3 {
		t.Errorf("%v holds no ExitError", err)
	}
	if err := shell(t, t.Context(), handlers.ExecConfig{}, &task.Task{}, `exit 1`); err == nil || err.Error() != "exec /bin/sh: exit status 1" {
		t.Errorf("without stderr: %v", err)
	}
	if err := shell(t, t.Context(), handlers.ExecConfig{}, &task.Task{}, `kill -9 $$`); err == nil || err.Error() != "exec /bin/sh: signal: killed" {
		t.Errorf("killed by another: %v", err)
	}
}

func TestExec_capsTheOutputItKeeps(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	err := shell(t, t.Context(), handlers.ExecConfig{Output: 100, Log: zerolog.New(&log)}, &task.Task{ID: "x"},
		`i=0; while [ $i -lt 20000 ]; do echo 0123456789; i=$((i+1)); done; head -c 100000 /dev/zero | tr '\0' y; printf done; echo short >&2`)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Task, Stdout, Stderr, Message string }
	if err := json.Unmarshal(log.Bytes(), &got); err != nil {
		t.Fatalf("%s: %v", log.String(), err)
	}
	if got.Stdout != "…"+strings.Repeat("y", 96)+"done" || got.Stderr != "short\n" || got.Task != "x" || got.Message != "command ended" {
		t.Errorf("logged %+v", got)
	}
}

func TestExec_reportsACommandThatCannotStart(t *testing.T) {
	t.Parallel()
	h := handlers.Exec(handlers.ExecConfig{})
	err := h.Handle(t.Context(), &task.Task{Payload: payload("command", []string{"/nowhere/at-all", "secret"})})
	if !errors.Is(err, os.ErrNotExist) || handlers.IsDead(err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	gone := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := shell(t, ctx, handlers.ExecConfig{}, &task.Task{}, "true"); !errors.Is(err, gone) || err.Error() != "exec /bin/sh: lease lost" {
		t.Errorf("on an ended context: %v", err)
	}
}

// waitFor reads the process number that a script writes to a file.
func waitFor(t *testing.T, file string) int {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if raw, err := os.ReadFile(file); err == nil && bytes.HasSuffix(raw, []byte("\n")) {
			pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("nothing was written to %s", file)
	return 0
}

// expectGone waits until a process is gone, or is a zombie that no parent reaps.
func expectGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return
		}
		if raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(raw), ") Z ") {
			return
		}
	}
	t.Errorf("process %d lives on", pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
}

func TestExec_endsTheWholeGroupWithTheContext(t *testing.T) {
	t.Parallel()
	lost := errors.New("lease lost")
	for name, c := range map[string]struct{ script, want string }{
		"all obey": {`sleep 60 & echo $! > "$OUT"; wait`, "signal: terminated"},
		"a child that holds the output and does not obey": {`sh -c 'trap "" TERM; echo $$ > "$OUT"; while :; do sleep 0.1; done' & wait`,
			"signal: terminated"},
		"a quiet child that does not obey": {`sh -c 'trap "" TERM; echo $$ > "$OUT"; while :; do sleep 0.1; done' >/dev/null 2>&1 & wait`,
			"signal: terminated"},
		"none obeys":      {`trap "" TERM; sh -c 'echo $$ > "$OUT"; while :; do sleep 0.1; done' & while :; do sleep 0.1; done`, "signal: killed"},
		"it exits with 0": {`trap "echo bye >&2; exit 0" TERM; sh -c 'echo $$ > "$OUT"; sleep 60' & wait`, ": bye"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "pid")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			ended := make(chan error, 1)
			x := &task.Task{Payload: payload("command", []string{"/bin/sh", "-c", c.script}, "env", map[string]string{"OUT": out})}
			go func() { ended <- handlers.Exec(handlers.ExecConfig{Grace: 300 * time.Millisecond}).Handle(ctx, x) }()
			child := waitFor(t, out)
			cancel(lost)
			select {
			case err := <-ended:
				if !errors.Is(err, lost) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v\nwant %s", err, c.want)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it did not end")
			}
			expectGone(t, child)
		})
	}
}

func TestExec_killsWhatACommandLeavesBehind(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"with the output open": `sleep 60 & echo $! > "$OUT"`,
		"quietly":              `sleep 60 >/dev/null 2>&1 & echo $! > "$OUT"`,
	} {
		out := filepath.Join(t.TempDir(), "pid")
		err := shell(t, t.Context(), handlers.ExecConfig{Grace: 100 * time.Millisecond}, &task.Task{}, script, "env", map[string]string{"OUT": out})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		expectGone(t, waitFor(t, out))
	}
}

// The exit has decided: a process that still holds the output, or does not read its input, holds no worker for a long grace.
func TestExec_isOverSoonAfterTheExit(t *testing.T) {
	t.Parallel()
	setsid, err := exec.LookPath("setsid")
	for name, c := range map[string]struct {
		script string
		skip   bool
	}{
		"a child that holds the output":              {script: `sleep 60 & echo $! > "$OUT"`},
		"one outside the group that holds it":        {`"$SETSID" sh -c 'echo $$ > "$OUT"; exec sleep 60' & while [ ! -s "$OUT" ]; do sleep 0.01; done`, err != nil},
		"one that holds the input and reads nothing": {script: `exec 3<&0; sleep 60 <&3 >/dev/null 2>&1 & echo $! > "$OUT"`},
	} {
		if c.skip {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "pid")
			start := time.Now()
			err := shell(t, t.Context(), handlers.ExecConfig{Grace: time.Minute}, &task.Task{}, c.script,
				"env", map[string]string{"OUT": out, "SETSID": setsid}, "stdin", strings.Repeat("x", 1<<20))
			if took := time.Since(start); err != nil || took > 10*time.Second {
				t.Errorf("after %s: %v", took, err)
			}
			_ = syscall.Kill(waitFor(t, out), syscall.SIGKILL)
		})
	}
}

// Told to end, a command's children may use the grace to clean up, and to say what they have to.
func TestExec_hearsChildrenInTheirGrace(t *testing.T) {
	t.Parallel()
	lost := errors.New("lease lost")
	out := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	ended := make(chan error, 1)
	x := &task.Task{Payload: payload("command", []string{"/bin/sh", "-c",
		`sh -c 'trap "sleep 2; echo cleaned up >&2; exit" TERM; echo $$ > "$OUT"; while :; do sleep 0.1; done' & wait`},
		"env", map[string]string{"OUT": out})}
	go func() { ended <- handlers.Exec(handlers.ExecConfig{Grace: 20 * time.Second}).Handle(ctx, x) }()
	child := waitFor(t, out)
	cancel(lost)
	if err := <-ended; !errors.Is(err, lost) || !strings.HasSuffix(err.Error(), " cleaned up") {
		t.Errorf("%v", err)
	}
	expectGone(t, child)
}

func TestExec_refuses(t *testing.T) {
	t.Parallel()
	h := handlers.Exec(handlers.ExecConfig{})
	for p, field := range map[string]string{
		`{}`:                                             "payload.command",
		`{"command":[""]}`:                               "payload.command",
		`{"command":"ls"}`:                               "payload.command",
		`{"command":["a","b\u0000"]}`:                    "payload.command[1]",
		`{"command":["a"],"dir":"\u0000"}`:               "payload.dir",
		`{"command":["a"],"env":{"A=B":""}}`:             "payload.env",
		`{"command":["a"],"env":{"":""}}`:                "payload.env",
		`{"command":["a"],"env":{"A":"x\u0000"}}`:        "payload.env",
		`{"command":["a"],"env":{"ONBEAT_TASK_ID":"x"}}`: "payload.env",
		`{"command":["a"],"env":{"TRACEPARENT":"x"}}`:    "payload.env",
		`{"command":["a"],"cwd":"/"}`:                    "payload.cwd",
	} {
		err := h.(handlers.PayloadChecker).CheckPayload([]byte(p))
		if e, ok := errors.AsType[*task.FieldError](err); !ok || e.Field != field {
			t.Errorf("%s: %v, want %s refused", p, err, field)
		}
		if err := h.Handle(t.Context(), &task.Task{Payload: []byte(p)}); handlers.IsDead(err) == errors.Is(err, handlers.ErrUnknownField) {
			t.Errorf("%s: the run ends with %v, want it dead unless a newer release may read it", p, err)
		}
	}
}

func ExampleExec() {
	h := handlers.Exec(handlers.ExecConfig{})
	err := h.Handle(context.Background(), task.New("exec", map[string]any{"command": []string{"sh", "-c", "echo no disk >&2; exit 3"}}))
	fmt.Println(err)
	// Output:
	// exec sh: exit status 3: no disk
}

// The output of a command is the end of its stdout. Where that is cut, no part of a secret is left.
func TestExec_putsOutTheEndOfStdout(t *testing.T) {
	t.Parallel()
	const card = "4000-1234-5678-9010"
	for _, tt := range []struct {
		name, script, want string
		fails              bool
	}{
		{"nothing", "true", "", false},
		{"short", "echo 12 rows; echo warned >&2", "12 rows\n", false},
		{"long", "printf %0100d 0; echo end", "…" + strings.Repeat("0", 43) + "end\n", false},
		{"a failure", "echo 12 rows; exit 3", "12 rows\n", true},
		{"a secret", `echo "card $CARD"`, "card ***\n", false},
	} {
		x := &task.Task{Secret: []string{"env.CARD"}}
		ctx := handlers.KeepOutput(handlers.NewContext(t.Context(), x), 50)
		err := shell(t, ctx, handlers.ExecConfig{Output: 99}, x, tt.script, "env", map[string]string{"CARD": card, "PATH": "/bin:/usr/bin"})
		if got := handlers.Kept(ctx, x); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: %q, want %q; %v", tt.name, got, tt.want, err)
		}
	}
	for n := range len(card) { // the beginning of what is kept falls anywhere within the card
		x := &task.Task{Secret: []string{"env.CARD"}}
		ctx := handlers.KeepOutput(handlers.NewContext(t.Context(), x), 50)
		_ = shell(t, ctx, handlers.ExecConfig{Output: len(card)}, x, `printf "%s%0`+strconv.Itoa(n+1)+`d" "$CARD" 0`, "env", map[string]string{"CARD": card, "PATH": "/bin:/usr/bin"})
		if got := handlers.Kept(ctx, x); len(card)-n-1 >= 4 && strings.Contains(got, card[len(card)-4:]) {
			t.Errorf("cut at %d: %q", n, got)
		}
	}
}
