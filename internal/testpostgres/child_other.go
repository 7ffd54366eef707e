//go:build !linux

package testpostgres

import (
	"errors"
	"syscall"
)

func asChild() *syscall.SysProcAttr { return nil }

func give(string) error { return nil }

func freeze(int, bool) error { return errors.New("only on Linux") }
