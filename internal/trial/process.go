package trial

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// Process is a process that can be stopped, killed and frozen. It has its own process group, so that keys typed in a
// terminal do not reach it. On Linux the kernel kills it when this process is gone.
type Process struct {
	Name string

	cmd    *exec.Cmd
	log    string
	told   syscall.Signal
	exited chan struct{}
}

// Program is what to start. The zero Program is that of this process.
type Program struct {
	Path string
	Args []string
	Env  []string // beside this process's environment, without onbeat's variables
	Dir  string
}

// Start starts a process that logs to a file.
func Start(name, log string, of Program) (*Process, error) {
	if of.Path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		of.Path = self
	}
	file, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the child has its own copy
	cmd := exec.Command(of.Path, of.Args...)
	cmd.Stdout, cmd.Stderr = file, file
	cmd.Dir = of.Dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ONBEAT_") })
	cmd.Env = append(cmd.Env, of.Env...)
	cmd.SysProcAttr = ofOurs()
	p := &Process{Name: name, cmd: cmd, log: log, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		// Linux kills the child when the thread that started it ends: keep that thread for as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Exited is closed when the process has ended and was waited for.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// HasExited reports whether the process has ended.
func (p *Process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// ExitCode returns the exit code, or -1 if a signal ended the process. Call it only after the process has exited.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Signal sends the process a signal. Its children do not get it.
func (p *Process) Signal(s syscall.Signal) error {
	p.told = s
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("signal %s: %w", p.Name, err)
	}
	return nil
}

// Told returns the last signal that the process was sent, or 0.
func (p *Process) Told() syscall.Signal { return p.told }

// Crashed reports whether the process ended though nobody here told it to.
func (p *Process) Crashed() bool {
	return p.HasExited() && p.told != SigTerm && p.told != SigKill
}

// Kill ends the process, in any state, and waits until it is gone.
func (p *Process) Kill() {
	p.told = SigKill
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Log returns what the process has logged so far.
func (p *Process) Log() (string, error) {
	text, err := os.ReadFile(p.log)
	return string(text), err
}
