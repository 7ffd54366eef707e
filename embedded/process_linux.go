package embedded

import "syscall"

// childAttr keeps the terminal's signals from the child, and has the kernel kill
// it when its parent is gone. Killing loses nothing: what Redis has answered, it
// has already handed to the kernel.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
