//go:build unix

package testredis

import "syscall"

func kill(pid int) error   { return syscall.Kill(pid, syscall.SIGKILL) }
func pause(pid int) error  { return syscall.Kill(pid, syscall.SIGSTOP) }
func resume(pid int) error { return syscall.Kill(pid, syscall.SIGCONT) }
