package embedded

import "syscall"

// childAttr keeps the terminal's signals from the child, and makes the kernel kill the child when its parent is gone. That
// loses nothing: Redis has handed every write that it acknowledged to the kernel.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
