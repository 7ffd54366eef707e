package main

import "syscall"

// lockChildAttr has the kernel end a command whose lock nobody keeps any more, because we were killed.
func lockChildAttr(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group, Pdeathsig: syscall.SIGTERM}
}
