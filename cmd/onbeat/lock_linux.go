package main

import "syscall"

// lockChildAttr makes the kernel end the command if we are killed, because then no process renews the lock.
func lockChildAttr(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGTERM}
}
