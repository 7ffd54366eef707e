package onbeat

import (
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// The names below are those of other packages, repeated here so that a program that only uses a [Dispatcher] imports no
// package besides task, schedule and handlers. What [Dispatcher.Admin] takes and returns is in package admin.

// Errors that a [Dispatcher] returns. Match them with errors.Is..
var (
	// ErrInvalid: a field is invalid. The error is a [*FieldError].
	ErrInvalid = task.ErrInvalid
	// ErrDuplicate: the task's ID or unique key is taken. The error is a [*Refused], which names the task that holds it.
	ErrDuplicate = task.ErrDuplicate
	// ErrFull: Redis is at maxmemory. Nothing was written.
	ErrFull = task.ErrFull
	// ErrUnreachable: the connection failed or broke. The call may or may not have taken effect.
	ErrUnreachable = task.ErrUnreachable
	// ErrBusy: Redis answers, but cannot serve now.
	ErrBusy = task.ErrBusy
	// ErrUnreplicated: the write is done, but too few replicas have it for a strict [Durability].
	ErrUnreplicated = task.ErrUnreplicated
	// ErrDenied: Redis refuses the user, the password, or a command to this user.
	ErrDenied = task.ErrDenied
	// ErrNotFound: there is no such task, schedule, release or instance.
	ErrNotFound = task.ErrNotFound
	// ErrChanged: other callers changed the same thing at the same time, more often than the call was retried.
	ErrChanged = task.ErrChanged
)

type (
	// FieldError refuses one field of the input.
	FieldError = task.FieldError
	// BatchError says which task of a batch was refused, and why.
	BatchError = producer.BatchError
	// Refused says why a task was not added. It matches [ErrDuplicate].
	Refused = task.Refused
	// Result says what became of one task of a batch; see [Dispatcher.EnqueueAll].
	Result = producer.Result

	// Durability says how many replicas of Redis must have a write; see [Config].
	Durability = store.Durability
	// Caps bound what Redis keeps of finished work; see [Config].
	Caps = queue.Caps
	// Schedule is a schedule as [Dispatcher.Declare] takes it.
	Schedule = producer.Schedule
)
