package main

import "golang.org/x/sys/unix"

// hideMemory keeps the environment and the memory of this process, with the password of Redis in them, from other
// processes of the same user, among them the commands that it starts: they could read /proc/PID/environ. Only one with
// CAP_SYS_PTRACE (or, of late, CAP_PERFMON) still can, such as that of root outside a container.
//
// The price: no core dumps, and no debugger or strace for whoever is not root; /proc/PID belongs to root, so that not
// even lsof of the same user sees the open files. A child is as open as ever once it runs its own program.
func hideMemory() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
