//go:build !linux

package network

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
