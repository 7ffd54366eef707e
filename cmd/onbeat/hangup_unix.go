//go:build unix

package main

import "syscall"

// hangup asks a running instance to read its schedules again.
const hangup = syscall.SIGHUP
