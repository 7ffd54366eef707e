package embedded

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

var errLocked = errors.New("locked by another process")

const locksAreInherited = false

func tryLock(f *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	// The lock lies far behind the text in the file, which other processes need to read.
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{Offset: 1 << 30})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errLocked
	}
	return err
}

func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// terminate kills the process: without a console window there is no gentler way to end it.
func terminate(p *os.Process) error { return p.Kill() }
