package main

import "golang.org/x/sys/unix"

// hideMemory hides the environment and the memory of this process, which hold the password of Redis, from other processes of
// the same user. Among these are the commands that it starts: they could read /proc/PID/environ. Only a process with
// CAP_SYS_PTRACE (in newer kernels also CAP_PERFMON) can still read them, such as one of root outside a container.
//
// The price: no core dumps, and no debugger or strace except for root. /proc/PID belongs to root, so that even lsof of the same
// user does not see the open files. A child is readable again as soon as it runs its own program.
func hideMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
