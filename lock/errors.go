package lock

import (
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/task"
)

// Why a lock was not taken, and why one ended. Match with errors.Is.
var (
	// ErrHeld: another holder has the lock. See [HeldError].
	ErrHeld = errors.New("lock is held by another holder")
	// ErrUnreachable: Redis did not answer, or too few nodes of a quorum did; the same as [task.ErrUnreachable]. The lock
	// may have been taken; if so, it is free again after its TTL (or AtLeastFor).
	ErrUnreachable = task.ErrUnreachable
	// ErrLost: the lease could not be renewed, or the lock was taken away in Redis. Others may hold it.
	ErrLost = errors.New("lock is lost")
	// ErrAtMost: the lock was held for [Options.AtMostFor].
	ErrAtMost = errors.New("lock reached its time limit")
	// ErrReleased: the holder released the lock.
	ErrReleased = errors.New("lock is released")
)

// HeldError says that another holder has the lock. It matches [ErrHeld].
type HeldError struct {
	// Name is the name of the lock.
	Name string
	// For is how long the lock surely stays held if it is not released: the rest of the lease, by the clock of Redis. The
	// holder renews the lease while it lives.
	For time.Duration
}

// Error is one line for a person.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lock %q is held by another holder (for %s; shorter if it releases the lock, longer if it renews it)", e.Name, e.For)
}

// Is matches [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
