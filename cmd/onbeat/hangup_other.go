//go:build !unix

package main

import "syscall"

// hangup is never sent on this system.
const hangup = syscall.Signal(1)
