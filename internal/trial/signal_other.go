//go:build !unix

package trial

import "syscall"

// Without unix there are no signals that stop a process and let it go on.
const (
	CanSignal = false
	SigTerm   = syscall.SIGTERM
	SigKill   = syscall.SIGKILL
	SigStop   = syscall.Signal(19)
	SigCont   = syscall.Signal(18)
)

func ofOurs() *syscall.SysProcAttr { return nil }
