package task

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/wording"
)

// DefaultQueue is the queue of a task whose Queue is empty.
const DefaultQueue = "default"

// Own begins the types and the IDs of the dispatcher's own tasks.
const Own = "onbeat."

// BulkType is the type of the tasks that cancel, retry or delete many tasks. Every instance handles it.
const BulkType = Own + "bulk"

// Defaults for fields that are not set.
const (
	DefaultMaxAttempts = 10
	DefaultTimeout     = 30 * time.Minute
	DefaultKeepByID    = 24 * time.Hour
	DefaultUniqueFor   = 24 * time.Hour
)

// Task is a unit of work. Make one with [New] and options, or as a literal. The zero value of every field except Type is
// valid.
type Task struct {
	// ID names the task within its namespace. If it is empty, enqueueing sets it. While a task with that ID is known (due,
	// running, dead, or done and kept), a second one is refused as a duplicate.
	ID string
	// Type picks the handler. Required; see [CheckName] for the characters allowed.
	Type string
	// Payload is the input of the handler, usually JSON.
	Payload []byte
	// Secret are the paths of the payload whose values commands and logs hide; see [Secret]. They stay with the task.
	Secret []string
	// Sealed is the payload as the record has it, if that is encrypted. [Task.Open] reads it. Callers of Enqueue leave it nil.
	Sealed *Sealed

	// Queue is the queue in which the task waits. Empty means [DefaultQueue].
	Queue string
	// Priority orders the task within its queue, ahead of due time. The zero value is Normal.
	Priority Priority
	// Due is the earliest time at which the task may start, in whole milliseconds. If Due and Delay are zero, it may start
	// at once.
	Due time.Time
	// Delay, if Due is zero, is added to the clock of Redis when the task is enqueued. The record does not keep it.
	Delay time.Duration

	// MaxAttempts bounds how many runs of the task are started. Zero means [DefaultMaxAttempts].
	MaxAttempts int
	// Backoff spaces the attempts. The zero value is the default; see [Backoff].
	Backoff Backoff
	// Timeout bounds each run. Zero means [DefaultTimeout].
	Timeout time.Duration
	// Keep is how long the finished task stays visible (and its ID refused). Zero means [DefaultKeepByID] if the caller
	// chose the ID, else not at all. Negative: never kept.
	Keep time.Duration

	// UniqueKey refuses this task if another with the same key was enqueued less than UniqueFor ago.
	UniqueKey string
	// UniqueFor is the window of UniqueKey. Zero means [DefaultUniqueFor]. The record keeps neither.
	UniqueFor time.Duration

	// Key joins tasks of which at most KeyLimit run at once, over all instances. Empty: no limit.
	Key string
	// KeyLimit is how many tasks with this Key may run at once. Zero means 1.
	KeyLimit int
	// Overlap says what happens when the task is due while its Key is at its limit. The zero value waits.
	Overlap Overlap

	// Schedule is the schedule that made the task, and Slot is the task's place on the grid. Both are zero for other tasks.
	Schedule string
	Slot     time.Time

	// Trace is the W3C traceparent of the caller that enqueued the task, and TraceState the tracestate that goes with it. Optional.
	// With a TracerProvider, the record has the span of the enqueue in their place. The Trace of a slot is that of its push, or of
	// its first attempt: its runs have a link to that span, and no parent.
	Trace      string
	TraceState string
	// Created is when the task was enqueued, by the clock of the producer. It is zero for a slot that a leader pushed: the slot says
	// when. With the ID it tells a task from a later one under the same ID.
	Created time.Time

	// Attempts counts the runs that were started and have ended (or were lost with their instance).
	Attempts int
	// Failures are the newest errors, oldest first, at most [MaxFailures].
	Failures []Failure

	// Attempt is the number of the current run, from 1. Zero unless the task is running.
	Attempt int
	// Fence is the fencing token of the run. It rises with every claim in the partition, and tasks that were claimed
	// together share one. To make an effect happen once, keep the largest fence seen of its task and refuse smaller ones.
	// Also refuse an equal fence if it comes with another attempt or a second time: two primaries that do not know each
	// other may give the same.
	Fence int64
	// Claimed is when this run was claimed, by the clock of Redis.
	Claimed time.Time
	// Instance and Release say which instance runs the task.
	Instance string
	Release  string

	unknown []byte // fields of a newer release's record, kept when the record is rewritten
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

// New returns a task of a type with a payload: nil for none, []byte and json.RawMessage unchanged, every other value
// encoded as JSON. If the payload cannot be encoded, [Task.Validate] says so, and enqueueing refuses the task.
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

// QueueName returns Queue, or [DefaultQueue] if it is empty.
func (t *Task) QueueName() string {
	if t.Queue == "" {
		return DefaultQueue
	}
	return t.Queue
}

// AttemptsAllowed returns MaxAttempts, or its default.
func (t *Task) AttemptsAllowed() int {
	if t.MaxAttempts == 0 {
		return DefaultMaxAttempts
	}
	return t.MaxAttempts
}

// RunTimeout returns Timeout, or its default.
func (t *Task) RunTimeout() time.Duration {
	if t.Timeout == 0 {
		return DefaultTimeout
	}
	return t.Timeout
}

// Fail records a failure and counts the attempt. It drops the oldest failures beyond [MaxFailures], and cuts the text at
// [MaxFailureText] bytes.
func (t *Task) Fail(f Failure) {
	t.Attempts++
	f.Error = wording.Cut(f.Error, MaxFailureText)
	t.Failures = append(t.Failures, f)
	if n := len(t.Failures) - MaxFailures; n > 0 {
		t.Failures = append(t.Failures[:0:0], t.Failures[n:]...)
	}
}

// MaxFailureText bounds the text of one kept error, in bytes: enough for a stack, not for a core dump.
const MaxFailureText = 4 << 10

// LastError returns the text of the newest failure, or "".
func (t *Task) LastError() string {
	if len(t.Failures) == 0 {
		return ""
	}
	return t.Failures[len(t.Failures)-1].Error
}
