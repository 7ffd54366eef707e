//go:build unix && !linux

package trial

import "syscall"

// ofOurs keeps the terminal's signals from a child.
func ofOurs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
