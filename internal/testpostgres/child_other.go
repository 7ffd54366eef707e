//go:build !linux

package testpostgres

import "syscall"

func asChild() *syscall.SysProcAttr { return nil }

func give(string) error { return nil }
