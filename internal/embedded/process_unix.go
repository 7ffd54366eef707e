//go:build unix && !linux

package embedded

import "syscall"

// childAttr keeps the terminal's signals from the child.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
