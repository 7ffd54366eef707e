//go:build unix

package handlers

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// inGroup starts the command in a process group of its own.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup tells the command and its group to end.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// awaitGroup waits until the group is empty, but not longer than until. The command itself has exited.
func awaitGroup(cmd *exec.Cmd, until time.Time) {
	for ; time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH) {
			return
		}
	}
}

// killGroup kills what is left of the group.
//
// While a member of the group lives, the kernel gives the group's number to no other process. If no member lives, the
// signal reaches no process, unless the kernel has used all process numbers since the exit and begun again.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
