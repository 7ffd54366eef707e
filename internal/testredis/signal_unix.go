//go:build unix

package testredis

import (
	"errors"
	"syscall"
)

func kill(pid int) error   { return syscall.Kill(pid, syscall.SIGKILL) }
func pause(pid int) error  { return syscall.Kill(pid, syscall.SIGSTOP) }
func resume(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }

// alive reports whether there is a process with this ID.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
