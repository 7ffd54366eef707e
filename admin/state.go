package admin

import (
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// TaskState says how a task stands. A task has exactly one state. It is decided here, from the place of the task ([task.State]) and its due
// time; the API, the commands and the pages show it.
type TaskState string

// The states.
const (
	TaskRunning  TaskState = "running"  // an instance runs it
	TaskWaiting  TaskState = "waiting"  // its due time has come: it waits for a worker, or for its key
	TaskRetrying TaskState = "retrying" // an attempt has failed, and the due time of the next one lies ahead
	TaskPlanned  TaskState = "planned"  // its due time lies ahead, and no attempt has ended
	TaskDead     TaskState = "dead"     // its last attempt failed
	TaskDone     TaskState = "done"     // it has ended, and is kept
	TaskGone     TaskState = "gone"     // Redis no longer has it, and the archive knows its runs; no filter takes it
)

// OverdueAfter is how long a task waits for a worker until it is overdue. A task that waits for its key is not: a task with that key runs.
const OverdueAfter = queue.LateAfter

// shelf is where the tasks of a state lie, or the tasks of several states whose order is one.
type shelf struct {
	name  string // in cursors
	place task.State
	part  queue.Part
}

// shelves are those of the states that a filter takes.
var shelves = []shelf{
	{string(TaskRunning), task.Running, queue.AllDue},
	{string(TaskWaiting), task.Due, queue.DueNow},
	{string(TaskRetrying), task.Due, queue.Retried},
	{string(TaskPlanned), task.Due, queue.Fresh},
	{string(TaskDead), task.Dead, queue.AllDue},
	{string(TaskDone), task.Done, queue.AllDue},
}

// due has all tasks that wait, retry or are planned. To read it costs less than to read the three parts.
var due = shelf{"due", task.Due, queue.AllDue}

// listed are the shelves in the order in which tasks of any state are listed.
var listed = []shelf{shelfOf(TaskRunning), due, shelfOf(TaskDead), shelfOf(TaskDone)}

func shelfOf(s TaskState) shelf {
	for _, x := range shelves {
		if x.name == string(s) {
			return x
		}
	}
	return shelf{}
}

// ParseTaskState reads the name of a state that a filter takes.
func ParseTaskState(s string) (TaskState, error) {
	if shelfOf(TaskState(s)).name == "" {
		return "", &task.FieldError{Field: "state", Value: s, Reason: "unknown state", Hint: "one of running, waiting, retrying, planned, dead, done"}
	}
	return TaskState(s), nil
}

// stateOf decides the state of a task that Redis has.
func stateOf(f *queue.Found, now time.Time) TaskState {
	switch {
	case f.State != task.Due:
		return TaskState(f.State)
	case f.Held || !f.At.After(now):
		return TaskWaiting
	case f.Task.Attempts > 0:
		return TaskRetrying
	}
	return TaskPlanned
}

// isOverdue reports whether a task has been waiting for a worker for too long.
func isOverdue(f *queue.Found, now time.Time) bool {
	return f.State == task.Due && !f.Held && now.Sub(f.At) > OverdueAfter
}
