//go:build unix

package main

import "syscall"

// The signals of the demo.
const (
	canSignal = true
	sigTerm   = syscall.SIGTERM
	sigKill   = syscall.SIGKILL
	sigStop   = syscall.SIGSTOP
	sigCont   = syscall.SIGCONT
)
