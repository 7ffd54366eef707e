package lock

import (
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/store"
)

// Why there is no lock, and why one ended. Match with errors.Is.
var (
	// ErrHeld: somebody else has the lock. See [HeldError].
	ErrHeld = errors.New("lock is held by another")
	// ErrUnreachable: Redis did not answer, or too few of the nodes of a quorum did; the same as
	// [store.ErrUnreachable]. Whether the lock was taken is open; if so, it is free again after its TTL (or AtLeastFor).
	ErrUnreachable = store.ErrUnreachable
	// ErrLost: the lease could not be kept, or somebody took the lock away. Others may hold it.
	ErrLost = errors.New("lock is lost")
	// ErrAtMost: the lock was held for [Options.AtMostFor].
	ErrAtMost = errors.New("lock was held for as long as allowed")
	// ErrReleased: the lock was released in order.
	ErrReleased = errors.New("lock is released")
)

// HeldError says that somebody else has the lock. It matches [ErrHeld].
type HeldError struct {
	// Name is the lock.
	Name string
	// For is how long it is surely not free if it is not released: what the lease has left, by the clock of Redis. The
	// holder renews it while it lives.
	For time.Duration
}

// Error is one line for a person.
func (e *HeldError) Error() string {
	return fmt.Sprintf("lock %q is held by another (for %s, or until released, or longer if renewed)", e.Name, e.For)
}

// Is matches [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
