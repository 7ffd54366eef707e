package task

import "fmt"

// State is the one place a task is in.
type State string

// The four places. A due task may be waiting for its time, a worker, a handler or its key.
const (
	Due     State = "due"
	Running State = "running"
	Dead    State = "dead"
	Done    State = "done"
)

// ParseState reads a state's name.
func ParseState(s string) (State, error) {
	switch st := State(s); st {
	case Due, Running, Dead, Done:
		return st, nil
	}
	return "", &FieldError{Field: "state", Value: s, Reason: "unknown state", Hint: "one of due, running, dead, done"}
}

// Priority orders the due tasks of one queue: all due High tasks start before Normal ones, those before Low ones.
type Priority int8

// The three priorities. Catching up on missed slots happens at Low.
const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

// String is low, normal or high.
func (p Priority) String() string {
	switch p {
	case Low:
		return "low"
	case Normal:
		return "normal"
	case High:
		return "high"
	}
	return fmt.Sprintf("Priority(%d)", int8(p))
}

// ParsePriority reads a priority's name; the empty string is Normal.
func ParsePriority(s string) (Priority, error) {
	switch s {
	case "low":
		return Low, nil
	case "", "normal":
		return Normal, nil
	case "high":
		return High, nil
	}
	return 0, &FieldError{Field: "priority", Value: s, Reason: "unknown priority", Hint: "one of low, normal, high"}
}

// MarshalText writes the priority's name.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the priority's name.
func (p *Priority) UnmarshalText(b []byte) error {
	v, err := ParsePriority(string(b))
	if err != nil {
		return err
	}
	*p = v
	return nil
}

// Conflict says what becomes of a due task whose key is at its limit. The letters are part of the record and of
// cycle.lua.
type Conflict byte

// The five answers. A schedule's overlap policy is one of Skip, QueueUp and Replace, with its name as the key. They look
// at the tasks on time only: one that is Behind makes them wait, and is neither skipped nor cancelled for them.
const (
	Wait    Conflict = 0   // wait its turn, in due order
	Skip    Conflict = 's' // leave the set, and be recorded as skipped
	QueueUp Conflict = 'q' // wait, but only one may; a later one is skipped
	Replace Conflict = 'r' // cancel the one that runs, wait for it to end; an earlier waiter is skipped
	Behind  Conflict = 'b' // wait behind all others: what was missed, or asked for besides the schedule
)

// Begun is the policy of a task that has begun and comes back: it is not skipped for its own schedule's overlap.
func (c Conflict) Begun() Conflict {
	if c == Behind {
		return c
	}
	return Wait
}
