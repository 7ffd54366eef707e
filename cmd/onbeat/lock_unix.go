//go:build unix

package main

import (
	"os"
	"syscall"
)

// forwarded are the signals that we pass on to the command.
var forwarded = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2}

const terminate = syscall.SIGTERM

// typed reports whether a terminal sends this signal.
func typed(s os.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// hasTerminal reports whether we have a terminal, on which a person types signals and from which the command may read.
func hasTerminal() bool {
	f, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// tell sends a signal to a process, or to all of its group, and reports whether the process is still there.
func tell(p *os.Process, s os.Signal, group bool) bool {
	there := p.Signal(syscall.Signal(0)) == nil
	if n, ok := s.(syscall.Signal); ok && group {
		_ = syscall.Kill(-p.Pid, n)
		return there
	}
	return p.Signal(s) == nil
}

// exitOf returns the exit code that a shell gives to a process that a signal ended.
func exitOf(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitFailed
}

func exitCode(state *os.ProcessState) int {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return exitOf(w.Signal())
	}
	return state.ExitCode()
}
