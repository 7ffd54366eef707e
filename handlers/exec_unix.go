//go:build unix

package handlers

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// inGroup has the command start in a process group of its own.
func inGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup tells the command and its group to end.
func endGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

// awaitGroup waits until the group is empty, its command having exited: at most until a time.
func awaitGroup(cmd *exec.Cmd, until time.Time) {
	for ; time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if errors.Is(syscall.Kill(-cmd.Process.Pid, 0), syscall.ESRCH) {
			return
		}
	}
}

// killGroup kills what is left of the group.
//
// The number of the group is not given to another process while a member lives; if none does, there is nobody to hit,
// unless the system wrapped around all its process numbers since the exit.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
