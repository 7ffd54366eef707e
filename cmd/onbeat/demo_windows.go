package main

import "syscall"

// Windows has no signals that stop and go on.
const (
	canSignal = false
	sigTerm   = syscall.SIGTERM
	sigKill   = syscall.SIGKILL
	sigStop   = syscall.Signal(19)
	sigCont   = syscall.Signal(18)
)

func childOfOurs() *syscall.SysProcAttr { return nil }
