//go:build unix && !linux

package main

import "syscall"

// childOfOurs keeps the terminal's signals from a child.
func childOfOurs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
