package main

import "syscall"

// childOfOurs keeps the terminal's signals from a child, and has the kernel kill it when we are gone.
func childOfOurs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
