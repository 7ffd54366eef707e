//go:build unix

package handlers

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// inGroup starts the command in a process group of its own, and ends that politely when the context does.
func inGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}

// endGroup kills what is left of the group of a command that has exited: at once, or, if it was told to end, after
// the rest of the group had the grace as well.
//
// The number of the group is not given to another process while a member lives; if none does, there is nobody to hit,
// unless the system wrapped around all its process numbers since the exit.
func endGroup(cmd *exec.Cmd, told bool, grace time.Duration) {
	group := -cmd.Process.Pid
	for end := time.Now().Add(grace); told && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if errors.Is(syscall.Kill(group, 0), syscall.ESRCH) {
			return
		}
	}
	_ = syscall.Kill(group, syscall.SIGKILL)
}
