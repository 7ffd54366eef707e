//go:build unix && !linux

package main

import "syscall"

// lockChildAttr cannot have the kernel end the command if we are killed.
func lockChildAttr(group bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: group} }
