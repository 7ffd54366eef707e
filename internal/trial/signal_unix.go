//go:build unix

package trial

import "syscall"

// The signals of a trial.
const (
	CanSignal = true
	SigTerm   = syscall.SIGTERM
	SigKill   = syscall.SIGKILL
	SigStop   = syscall.SIGSTOP
	SigCont   = syscall.SIGCONT
)
