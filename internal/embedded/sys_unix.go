//go:build unix

package embedded

import (
	"errors"
	"os"
	"syscall"
)

var errLocked = errors.New("locked by another process")

const locksAreInherited = true

func tryLock(f *os.File) error {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}

// terminate asks Redis to write its data and end. It first wakes a paused Redis, which could not react otherwise.
func terminate(p *os.Process) error {
	_ = p.Signal(syscall.SIGCONT)
	return p.Signal(syscall.SIGTERM)
}
