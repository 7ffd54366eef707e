//go:build !unix

package main

import "syscall"

// hangup is never sent here.
const hangup = syscall.Signal(1)
