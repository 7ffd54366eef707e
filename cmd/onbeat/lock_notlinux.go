//go:build unix && !linux

package main

import "syscall"

// lockChildAttr does nothing for a command whose parent is killed: only Linux can end it.
func lockChildAttr(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }
