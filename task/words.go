package task

import "fmt"

// State is the place that a task is in. A task is in exactly one. People see the states of
// [github.com/onbeat/onbeat/admin.TaskState], which tell due tasks apart by their time too.
type State string

// The four places. A due task may wait for its time, a worker, a handler or its key.
const (
	Due     State = "due"
	Running State = "running"
	Dead    State = "dead"
	Done    State = "done"
)

// ParseState reads the name of a state.
func ParseState(s string) (State, error) {
	switch st := State(s); st {
	case Due, Running, Dead, Done:
		return st, nil
	}
	return "", &FieldError{Field: "state", Value: s, Reason: "unknown state", Hint: "one of due, running, dead, done"}
}

// Priority orders the due tasks of one queue: all due High tasks start before the Normal ones, and those before the Low
// ones.
type Priority int8

// The three priorities. Missed slots of a schedule that runs all of them are pushed at Low.
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

// ParsePriority reads the name of a priority; the empty string is Normal.
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

// MarshalText writes the name.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the name.
func (p *Priority) UnmarshalText(b []byte) error {
	v, err := ParsePriority(string(b))
	if err != nil {
		return err
	}
	*p = v
	return nil
}

// Overlap says what happens to a due task whose key is at its limit. The letters are part of the record and of cycle.lua.
type Overlap byte

// The five overlaps. A schedule's overlap policy is Skip, QueueUp or Replace, with the schedule's name in the key. These
// three look only at the tasks on time. A Behind task makes them wait, and they neither skip nor cancel it.
const (
	Wait    Overlap = 0   // wait its turn, in due order
	Skip    Overlap = 's' // leave the due set, recorded as skipped
	QueueUp Overlap = 'q' // wait, but only one task may; a later one is skipped
	Replace Overlap = 'r' // cancel the running task and wait for its end; an earlier waiter is skipped
	Behind  Overlap = 'b' // wait behind all others: for slots that were missed, backfilled or triggered
)

// Begun returns the overlap of a task that had begun and comes back: its own schedule's overlap policy does not skip it.
func (c Overlap) Begun() Overlap {
	if c == Behind {
		return c
	}
	return Wait
}
