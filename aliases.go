package onbeat

import (
	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

// The names below are those of the rooms behind the door, so that a program which only uses a [Dispatcher] imports no room
// but task, schedule and handlers.

// Errors that a [Dispatcher] returns. Match them with errors.Is; package queue has those that only instances meet.
var (
	// ErrInvalid: a field was refused. The error is a [*FieldError].
	ErrInvalid = task.ErrInvalid
	// ErrDuplicate: the task's ID or unique key is taken. The error is a [*Refused], which names the task that has it.
	ErrDuplicate = queue.ErrDuplicate
	// ErrFull: Redis is at maxmemory. Nothing was written.
	ErrFull = store.ErrFull
	// ErrUnreachable: no connection, or it broke. What was asked may or may not have happened.
	ErrUnreachable = store.ErrUnreachable
	// ErrBusy: Redis answers, but cannot serve now.
	ErrBusy = store.ErrBusy
	// ErrUnreplicated: it is written, and too few replicas have it for a strict [Durability].
	ErrUnreplicated = store.ErrUnreplicated
	// ErrDenied: Redis refuses the user, the password, or a command to this user.
	ErrDenied = store.ErrDenied
	// ErrNotFound: there is no such task, schedule or release.
	ErrNotFound = queue.ErrNotFound
	// ErrChanged: other callers changed the same thing at the same time, more often than the call was retried.
	ErrChanged = queue.ErrChanged
)

type (
	// FieldError refuses one field of what was passed in.
	FieldError = task.FieldError
	// BatchError says which task of a batch was refused, and why.
	BatchError = producer.BatchError
	// Refused is why a task was not added. It matches [ErrDuplicate].
	Refused = queue.Refused
	// Result is what became of one task of a batch; see [Dispatcher.EnqueueAll].
	Result = producer.Result

	// Durability says for how many replicas of Redis a write waits; see [Config].
	Durability = store.Durability
	// Caps bound what is kept of work that has ended; see [Config].
	Caps = queue.Caps
	// Schedule is a schedule as [Dispatcher.Declare] takes it.
	Schedule = producer.Schedule
)

// What the methods of [Dispatcher.Schedules], [Dispatcher.Queue] and [Dispatcher.Instances] take and return.
type (
	// ScheduleStatus is a schedule and where it stands.
	ScheduleStatus = producer.Status
	// Found is a task and the place it was found in.
	Found = queue.Found
	// ListOptions narrow a list of tasks.
	ListOptions = queue.ListOptions
	// Page is a part of a list of tasks, and where the next part begins.
	Page = queue.Page
	// Counts are the numbers of tasks in each place.
	Counts = queue.Counts
	// LaneCount is the number of tasks of one queue, type and priority.
	LaneCount = queue.LaneCount
	// Event is one change of state: who leads, what was lost.
	Event = queue.Event
	// HistoryEntry is one entry of the history of slots.
	HistoryEntry = history.Entry
	// Note is what the history says of one slot, or of a range of slots.
	Note = history.Note
	// Instance is a live instance.
	Instance = instance.Info
)
