package admin

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Task is a task and its state when it was read. The task may have moved since.
type Task struct {
	ID    string    `json:"id"`
	Type  string    `json:"type"`
	State TaskState `json:"state"`
	// Held is set for a waiting task that waits for its key, Overdue for one that waits for a worker, for longer than [OverdueAfter].
	Held     bool      `json:"held,omitempty"`
	Overdue  bool      `json:"overdue,omitempty"`
	Queue    string    `json:"queue"`
	Priority string    `json:"priority"`
	Due      time.Time `json:"due,omitzero"`
	// At depends on the state: when the task is due, was claimed, or died, until when it is kept, or when its last run was noted.
	At       time.Time `json:"at,omitzero"`
	Schedule string    `json:"schedule,omitempty"`
	Slot     time.Time `json:"slot,omitzero"`
	// Attempts counts the attempts that have ended. Attempt is the number of the one that runs.
	Attempts    int             `json:"attempts"`
	Attempt     int             `json:"attempt,omitempty"`
	MaxAttempts int             `json:"max_attempts"`
	Instance    string          `json:"instance,omitempty"`
	Fence       int64           `json:"fence,omitempty"`
	Key         string          `json:"key,omitempty"`
	Created     time.Time       `json:"created,omitzero"`
	Timeout     string          `json:"timeout"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	// PayloadText is a payload that is not JSON.
	PayloadText string `json:"payload_text,omitempty"`
	// Secret are the paths of the payload that are secret; see [Task.Masked]. Encrypted says why the payload cannot be shown: it
	// is encrypted, and does not open here.
	Secret    []string       `json:"secret,omitempty"`
	Encrypted string         `json:"encrypted,omitempty"`
	Failures  []task.Failure `json:"failures,omitempty"`
	// Runs are those that the archive knows, the oldest first: the newest 1,000. RunsUnread says why they cannot be read. Only a
	// single task has them, and no list.
	Runs       []Run  `json:"runs,omitempty"`
	RunsUnread string `json:"runs_unread,omitempty"`
	// Unreadable says why the task's record cannot be read. Then only ID, State and At are known.
	Unreadable string `json:"unreadable,omitempty"`
}

// taskOf opens the payload with the keys. The secret paths of a type are those of this process too: a task that came before they
// were set has none.
func taskOf(f *queue.Found, now time.Time, p *producer.Producer, keys *seal.Keys) Task {
	t := f.Task
	if f.Unreadable != nil {
		return Task{ID: t.ID, State: stateOf(f, now), At: f.At, Unreadable: f.Unreadable.Error()}
	}
	closed := keys.OpenTask(t)
	out := Task{
		ID: t.ID, Type: t.Type, State: stateOf(f, now), Held: f.Held, Overdue: isOverdue(f, now), Queue: t.QueueName(), Priority: t.Priority.String(),
		Due: t.Due, At: f.At, Schedule: t.Schedule, Slot: t.Slot, Attempts: t.Attempts, Attempt: t.Attempt,
		MaxAttempts: t.AttemptsAllowed(), Instance: t.Instance, Fence: t.Fence, Key: t.Key, Created: t.Created,
		Timeout: schedule.FormatDuration(t.RunTimeout()), Failures: t.Failures,
	}
	out.Secret = p.Secret(t.Type, t.Secret)
	if closed != nil {
		out.Encrypted = closed.Error()
	}
	if json.Valid(t.Payload) {
		out.Payload = t.Payload
	} else {
		out.PayloadText = string(t.Payload)
	}
	return out
}

// brief returns the task as a list shows it that is read again and again.
func (t Task) brief() Task {
	t.Payload, t.PayloadText, t.Secret, t.Encrypted = nil, "", nil, ""
	t.Failures = t.Failures[max(len(t.Failures)-1, 0):]
	return t
}

// StateError reports that a task is in a state in which the call can do nothing.
type StateError struct {
	ID    string
	State TaskState // the state that the task is in
	Want  TaskState // the state that the call needs; "": one that has not ended
}

// Error says which state the task is in.
func (e *StateError) Error() string {
	if e.Want == "" {
		return fmt.Sprintf("task %q is already %s", e.ID, e.State)
	}
	return fmt.Sprintf("task %q is %s, not %s", e.ID, e.State, e.Want)
}
