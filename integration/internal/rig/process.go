package rig

import (
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/onbeat/onbeat/internal/testredis"
	"github.com/onbeat/onbeat/internal/trial"
)

// Process is one running `onbeat serve`.
type Process struct {
	*trial.Process
	w *World
}

// Serve starts an instance. It is killed when the test ends, and its log shown if the test failed.
func (w *World) Serve(name, config string, args ...string) *Process {
	w.Helper()
	return w.ServeAs(w.Binary(), nil, name, config, args...)
}

// ServeAs starts an instance of another build of the program, with more environment.
func (w *World) ServeAs(path string, env []string, name, config string, args ...string) *Process {
	w.Helper()
	started, err := w.Start(name, config, trial.Program{Path: path, Args: args, Env: env})
	if err != nil {
		w.Fatal(err)
	}
	p := &Process{Process: started, w: w}
	w.Cleanup(func() {
		p.Kill()
		if w.Failed() {
			w.Logf("%s said:\n%s", name, p.Log())
		}
	})
	return p
}

// Log returns the log so far.
func (p *Process) Log() string {
	text, err := p.Process.Log()
	if err != nil {
		p.w.Error(err)
	}
	return text
}

// Says returns how often the process has logged a message.
func (p *Process) Says(message string) int {
	return strings.Count(p.Log(), `"message":"`+message+`"`)
}

var registered = regexp.MustCompile(`"instance":"([^"]+)"[^\n]*"message":"registered"`)

// Instance returns the ID of the process's instance, or nothing before it has registered.
func (p *Process) Instance() string {
	if found := registered.FindStringSubmatch(p.Log()); found != nil {
		return found[1]
	}
	return ""
}

// Said waits until the process has logged a message.
func (p *Process) Said(message string) {
	p.w.Helper()
	p.SaidTimes(message, 1)
}

// SaidTimes waits until the process has logged a message the given number of times.
func (p *Process) SaidTimes(message string, times int) {
	p.w.Helper()
	testredis.Eventually(p.w, 20*time.Second, func() bool { return p.Says(message) >= times },
		"%s never said %q %d times", p.Name, message, times)
}

// Send sends a signal.
func (p *Process) Send(s syscall.Signal) {
	p.w.Helper()
	if err := p.Signal(s); err != nil {
		p.w.Fatal(err)
	}
}

// Stop sends SIGTERM and waits for a clean exit.
func (p *Process) Stop() {
	p.w.Helper()
	Stop(p)
}

// Stop sends SIGTERM to the processes that still run, all at once, and waits for clean exits.
func Stop(list ...*Process) {
	list = slices.DeleteFunc(slices.Clone(list), func(p *Process) bool { return p.HasExited() })
	for _, p := range list {
		p.Send(trial.SigTerm)
	}
	for _, p := range list {
		p.w.Helper()
		p.WantExit()
	}
}

// WantExit waits for a clean exit.
func (p *Process) WantExit() {
	p.w.Helper()
	select {
	case <-p.Exited():
		if code := p.ExitCode(); code != 0 {
			p.w.Errorf("%s did not exit cleanly: exit %d", p.Name, code)
		}
	case <-time.After(40 * time.Second):
		p.w.Fatalf("%s does not exit", p.Name)
	}
}
