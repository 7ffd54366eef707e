package testredis

import "syscall"

// dieWithParent makes a child end with the test, however the test ends.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
