package trial

import "syscall"

// ofOurs keeps the terminal's signals from a child, and makes the kernel kill the child when this process is gone.
func ofOurs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
