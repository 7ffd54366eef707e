package task

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat/internal/wording"
)

// ErrInvalid is matched by every [FieldError].
var ErrInvalid = errors.New("invalid")

// FieldError refuses one field of the input. Several of them may be joined.
type FieldError struct {
	Field  string // its name, and where it is: "schedules[3].every", "cron minute"
	Value  string // the value that was given; "" if there was none. The message shows the first 60 bytes of a long one.
	Reason string // what is wrong with it
	Hint   string // what to write instead; "" if there is nothing to add
}

// Error is one line for a person.
func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Field)
	if e.Value != "" {
		b.WriteString(" " + strconv.Quote(shortened(e.Value)))
	}
	b.WriteString(": " + e.Reason)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Is matches [ErrInvalid].
func (e *FieldError) Is(target error) bool { return target == ErrInvalid }

func shortened(s string) string {
	if len(s) <= 64 {
		return s
	}
	return wording.Cut(s, 60)
}

// Errors of the calls that add, read or change something in a namespace. Match them with errors.Is.
var (
	// ErrDuplicate is matched by each [Refused].
	ErrDuplicate = errors.New("duplicate")
	// ErrNotFound: there is no such task, schedule, release or instance.
	ErrNotFound = errors.New("not found")
	// ErrChanged: other callers changed the same thing at the same time, more often than the call was retried.
	ErrChanged = errors.New("changed at the same time")
	// ErrNoKey: a payload is encrypted with a key that this process does not have.
	ErrNoKey = errors.New("encrypted with a key that this process does not have")
	// ErrDamaged: a payload does not decrypt with the key of its ID: that is another key, or the payload was changed, or moved from
	// another task.
	ErrDamaged = errors.New("encrypted, and cannot be opened: another key has its ID, or it was changed in Redis")
)

// Errors of Redis. They wrap its reply. Match them with errors.Is.
var (
	// ErrUnreachable: no connection, or it broke. Redis may or may not have done the call. Retry with backoff.
	ErrUnreachable = errors.New("redis is unreachable")
	// ErrBusy: Redis answers, but cannot serve now (loading, a replica, a slot that moves). Retry.
	ErrBusy = errors.New("redis cannot serve now")
	// ErrUnreplicated: too few replicas have the write, and durability is strict. The primary has done the write, and may be lost with
	// it. Retry.
	ErrUnreplicated = errors.New("too few replicas")
	// ErrFull: Redis is at maxmemory and refused to take more. Nothing was written.
	ErrFull = errors.New("redis is out of memory")
	// ErrDenied: Redis refuses the user or the password, or the user may not call a command.
	ErrDenied = errors.New("redis denies access")
)

// Refused says why a task was not added. It matches [ErrDuplicate].
type Refused struct {
	// By is "id" (a task with this ID exists), "unique" (another task holds the unique key) or "moved" (an outbox has the task, and
	// another call moved it before).
	By string
	// ID is the ID of the existing task.
	ID string
}

func (r *Refused) Error() string {
	switch r.By {
	case "unique":
		return fmt.Sprintf("duplicate: task %q holds its unique key", r.ID)
	case "moved":
		return fmt.Sprintf("duplicate: the task %q was moved before", r.ID)
	}
	return fmt.Sprintf("duplicate: a task with the ID %q exists", r.ID)
}

// Is matches [ErrDuplicate].
func (r *Refused) Is(target error) bool { return target == ErrDuplicate }
