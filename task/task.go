package task

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/field"
)

// DefaultQueue is the queue of a task that names none.
const DefaultQueue = "default"

// Defaults that hold when a task says nothing else.
const (
	DefaultMaxAttempts = 10
	DefaultTimeout     = 30 * time.Minute
	DefaultKeepByID    = 24 * time.Hour
	DefaultUniqueFor   = 24 * time.Hour
)

// Task is a unit of work. Fill one through [New] and options, or as a literal; the zero value of every field but
// Type is ready to use.
type Task struct {
	// ID names the task within its namespace. Empty: one is made when it is enqueued. Enqueueing an ID that is
	// still known (due, running, dead, or done and kept) is refused as a duplicate.
	ID string
	// Type picks the handler. Required; see [Task.Validate] for the characters allowed.
	Type string
	// Payload is what the handler gets, usually JSON.
	Payload []byte

	// Queue is the named queue it waits in. Empty means [DefaultQueue].
	Queue string
	// Priority orders it within its queue, before due time. The zero value is Normal.
	Priority Priority
	// Due is the moment before which it does not start, in whole milliseconds. Zero with Delay zero: at once.
	Due time.Time
	// Delay, when Due is zero, is added to the clock of Redis as the task is enqueued. It is not kept in the record.
	Delay time.Duration

	// MaxAttempts bounds how many runs are started. Zero means [DefaultMaxAttempts].
	MaxAttempts int
	// Backoff spaces the attempts. The zero value is the default; see [Backoff].
	Backoff Backoff
	// Timeout bounds one run. Zero means [DefaultTimeout].
	Timeout time.Duration
	// Keep is how long the finished task stays visible (and its ID refused). Zero: [DefaultKeepByID] if the caller
	// chose the ID, else not at all. Negative: never kept.
	Keep time.Duration

	// UniqueKey refuses this task if another with the same key was enqueued less than UniqueFor ago.
	UniqueKey string
	// UniqueFor is the window of UniqueKey. Zero means [DefaultUniqueFor]. Neither is kept in the record.
	UniqueFor time.Duration

	// Key joins tasks of which at most KeyLimit run at once, over all instances. Empty: no limit.
	Key string
	// KeyLimit is the number of tasks of one Key that may run at once. Zero means 1.
	KeyLimit int
	// Conflict says what happens to a due task whose Key is at its limit. The zero value waits.
	Conflict Conflict

	// Schedule is the schedule that made the task, and Slot its place on the grid. Both are zero for other tasks.
	Schedule string
	Slot     time.Time

	// Trace is a W3C traceparent of whoever enqueued the task. Optional.
	Trace string
	// Created is when it was enqueued, by the clock of Redis for scheduled tasks, else of the producer.
	Created time.Time

	// Attempts counts the runs that were started and have ended (or were lost with their instance).
	Attempts int
	// Failures are the newest errors, oldest first, at most [MaxFailures].
	Failures []Failure

	// Attempt is the number of the present run, from 1. Zero unless the task is running.
	Attempt int
	// Fence rises with every claim in the partition, and tasks that were claimed together share one: an effect guarded by the
	// largest fence seen of its task happens once. Refuse an equal one too if it comes with another attempt, or once more:
	// two primaries that know nothing of each other may give the same.
	Fence int64
	// Claimed is when this run was claimed, by the clock of Redis.
	Claimed time.Time
	// Instance and Release say who runs it.
	Instance string
	Release  string

	unknown []byte // fields of a newer release's record, carried through a rewrite
	err     error  // what New could not encode
}

// MaxFailures is how many errors a record keeps.
const MaxFailures = 5

// Failure is one failed run.
type Failure struct {
	At       time.Time `json:"at"`
	Attempt  int       `json:"attempt"`
	Instance string    `json:"instance,omitempty"`
	Error    string    `json:"error"`
}

// New makes a task of a type with a payload: nil for none, []byte and json.RawMessage as they are, everything else
// encoded as JSON. A payload that cannot be encoded is reported by [Task.Validate], and so by enqueueing it.
func New(typ string, payload any, opts ...Option) *Task {
	t := &Task{Type: typ}
	switch p := payload.(type) {
	case nil:
	case []byte:
		t.Payload = p
	case json.RawMessage:
		t.Payload = p
	default:
		t.Payload, t.err = json.Marshal(p)
		if t.err != nil {
			t.err = &FieldError{Field: "payload", Reason: fmt.Sprintf("cannot be encoded as JSON: %v", t.err),
				Hint: "pass a value that encoding/json can marshal, or []byte"}
		}
	}
	return t.Apply(opts...)
}

// Apply applies options in order and returns t.
func (t *Task) Apply(opts ...Option) *Task {
	for _, o := range opts {
		o(t)
	}
	return t
}

// QueueName is Queue, or [DefaultQueue].
func (t *Task) QueueName() string {
	if t.Queue == "" {
		return DefaultQueue
	}
	return t.Queue
}

// AttemptsAllowed is MaxAttempts, or its default.
func (t *Task) AttemptsAllowed() int {
	if t.MaxAttempts == 0 {
		return DefaultMaxAttempts
	}
	return t.MaxAttempts
}

// RunTimeout is Timeout, or its default.
func (t *Task) RunTimeout() time.Duration {
	if t.Timeout == 0 {
		return DefaultTimeout
	}
	return t.Timeout
}

// Fail appends a failure and counts the attempt, dropping the oldest beyond [MaxFailures] and cutting its text at
// [MaxFailureText] bytes.
func (t *Task) Fail(f Failure) {
	t.Attempts++
	f.Error = field.Cut(f.Error, MaxFailureText)
	t.Failures = append(t.Failures, f)
	if n := len(t.Failures) - MaxFailures; n > 0 {
		t.Failures = append(t.Failures[:0:0], t.Failures[n:]...)
	}
}

// MaxFailureText bounds the text of one kept error: room for a stack, not for a core dump.
const MaxFailureText = 4 << 10

// LastError is the text of the newest failure, or "".
func (t *Task) LastError() string {
	if len(t.Failures) == 0 {
		return ""
	}
	return t.Failures[len(t.Failures)-1].Error
}
