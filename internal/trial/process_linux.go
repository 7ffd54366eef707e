package trial

import "syscall"

// ofOurs keeps the terminal's signals from a child, and has the kernel kill it when we are gone.
func ofOurs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
