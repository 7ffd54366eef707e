package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/tracing"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// ExecConfig tunes the exec handler. The zero value is ready to use.
type ExecConfig struct {
	// Grace is how long a command may go on after SIGTERM, before SIGKILL. Default 5s.
	Grace time.Duration `yaml:"grace"`

	// PassEnv names the environment variables of this process that a command inherits, besides PATH, HOME, USER, LANG,
	// LC_ALL, TZ and TMPDIR. All others are withheld, because the environment of a server holds its secrets.
	PassEnv []string `yaml:"pass_env"`

	// Output is how many bytes are kept of the end of stdout and of stderr, each. Default 4096.
	Output int `yaml:"output"`

	// Log receives both ends at debug. The zero Logger discards them.
	Log zerolog.Logger `yaml:"-"`
}

// Validate refuses, with one joined [*task.FieldError] for each, a negative number.
func (c ExecConfig) Validate() error {
	var list []error
	const hint = "leave it out for the default"
	if c.Grace < 0 {
		list = append(list, &task.FieldError{Field: "grace", Value: c.Grace.String(), Reason: "negative", Hint: hint})
	}
	if c.Output < 0 {
		list = append(list, &task.FieldError{Field: "output", Value: strconv.Itoa(c.Output), Reason: "negative", Hint: hint})
	}
	return wording.Join(list...)
}

func (c ExecConfig) withDefaults() ExecConfig {
	c.Grace = cmp.Or(max(c.Grace, 0), 5*time.Second)
	c.Output = cmp.Or(max(c.Output, 0), 4<<10)
	c.PassEnv = append([]string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"}, c.PassEnv...)
	return c
}

// Exec returns the handler that runs the command in the payload, without a shell. Every caller that can enqueue can then
// run any program as this process's user: register Exec only where that is intended. The payload:
//
//	{
//	  "command": ["pg_dump", "--file", "/backup/db"],  required
//	  "env":     {"PGHOST": "db"},                     none of ONBEAT_* and TRACEPARENT
//	  "dir":     "/srv",                               default: that of this process
//	  "stdin":   "text"
//	}
//
// The command gets ONBEAT_TASK_ID, ONBEAT_TASK_TYPE, ONBEAT_SCHEDULE (of scheduled tasks), ONBEAT_SLOT, ONBEAT_ATTEMPT,
// ONBEAT_INSTANCE, ONBEAT_RELEASE, ONBEAT_FENCE and TRACEPARENT, which mean the same as the headers of [HTTP].
//
// An exit status other than 0 fails the run. The error wraps [*exec.ExitError], ends with the end of stderr, and does not
// show the arguments. The end of stdout is the output of the run ([Output]): an archive keeps it.
//
// When the context ends, the command and all it started (its process group) get SIGTERM and, after the grace, SIGKILL. When the
// command exits, the processes that it leaves behind in its group are killed too. The run is over then, and its output is
// read for at most a second more, even if another process holds the pipe open. On systems other than Unix only the command
// itself is killed.
//
// None of this is a security boundary. A command runs as the user of this process. It can leave its group, with setsid(1)
// or as a daemon, and live on. It can read the files that this process can, and on Linux its environment in /proc, unless
// the process has forbidden that (PR_SET_DUMPABLE), as onbeat serve --allow-exec does. A command that must end with its
// run in any case needs a container or a systemd scope of its own.
func Exec(cfg ExecConfig) TaskHandler {
	h := &execHandler{cfg: cfg.withDefaults()}
	return typed[execPayload]{fn: h.run}
}

type execHandler struct{ cfg ExecConfig }

type execPayload struct {
	Command []string          `json:"command"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"dir"`
	Stdin   string            `json:"stdin"`
}

// Validate refuses a payload that does not make a command.
func (p execPayload) Validate() error {
	if len(p.Command) == 0 || p.Command[0] == "" {
		return &task.FieldError{Field: "command", Reason: "missing",
			Hint: `a program and its arguments, such as ["echo", "hello"]`}
	}
	for i, arg := range append(slices.Clone(p.Command), p.Dir) {
		if strings.ContainsRune(arg, 0) {
			return &task.FieldError{Field: cmp.Or(map[int]string{len(p.Command): "dir"}[i], fmt.Sprintf("command[%d]", i)),
				Reason: "has a NUL character", Hint: "leave it out"}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		e := &task.FieldError{Field: "env", Value: name}
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			e.Reason, e.Hint = "not a variable name", "such as PGHOST"
		case strings.HasPrefix(name, "ONBEAT_") || name == "TRACEPARENT":
			e.Reason, e.Hint = "is set by onbeat and cannot be overridden", "leave it out"
		case strings.ContainsRune(p.Env[name], 0):
			e.Reason, e.Hint = "its value has a NUL character", "leave it out"
		default:
			continue
		}
		return e
	}
	return nil
}

func (h *execHandler) run(ctx context.Context, p execPayload) error {
	t := FromContext(ctx)
	if ctx.Err() != nil {
		return execError(ctx, p.Command[0], ctx.Err(), &tail{})
	}
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Dir, cmd.Env = p.Dir, h.environ(ctx, t, p.Env)
	c, err := start(cmd, p.Stdin, h.cfg.Output)
	if err != nil {
		return execError(ctx, p.Command[0], err, c.stderr)
	}
	err = c.wait(ctx, h.cfg.Grace)
	c.stdout.keep(ctx)
	if e := h.cfg.Log.Debug(); e != nil {
		e.Str("task", t.ID).Str("stdout", c.stdout.String()).Str("stderr", c.stderr.String()).AnErr("error", err).Msg("command ended")
	}
	return execError(ctx, p.Command[0], err, c.stderr)
}

func execError(ctx context.Context, name string, err error, stderr *tail) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ctx.Err()): // it exited with 0 because it was told to end
		err = context.Cause(ctx)
	case ctx.Err() != nil:
		err = fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	name, err = oneLine(name, errorBody), clean(err)
	if end := oneLine(stderr.String(), errorBody); end != "" {
		return fmt.Errorf("exec %s: %w: %s", name, err, end)
	}
	return fmt.Errorf("exec %s: %w", name, err)
}

// environ returns the environment of the command, each name once: of two, os/exec takes the later.
func (h *execHandler) environ(ctx context.Context, t *task.Task, own map[string]string) []string {
	var env []string
	for _, name := range h.cfg.PassEnv {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		env = append(env, name+"="+own[name])
	}
	sc := traceOf(ctx, t)
	facts := [][2]string{
		{"ONBEAT_TASK_ID", t.ID}, {"ONBEAT_TASK_TYPE", t.Type}, {"ONBEAT_SCHEDULE", t.Schedule},
		{"ONBEAT_ATTEMPT", strconv.Itoa(t.Attempt)}, {"ONBEAT_INSTANCE", t.Instance}, {"ONBEAT_RELEASE", t.Release},
		{"ONBEAT_FENCE", strconv.FormatInt(t.Fence, 10)}, {"TRACEPARENT", tracing.Traceparent(sc)},
	}
	if _, set := own["TRACESTATE"]; !set {
		facts = append(facts, [2]string{"TRACESTATE", tracing.State(sc)})
	}
	if at := slotOf(t); !at.IsZero() {
		facts = append(facts, [2]string{"ONBEAT_SLOT", formatSlot(at)})
	}
	for _, f := range facts {
		if f[1] != "" {
			env = append(env, f[0]+"="+headerText(f[1]))
		}
	}
	return env
}
