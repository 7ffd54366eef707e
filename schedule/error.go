package schedule

import (
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// clipAt bounds how much of its input an error keeps, so that a megabyte of garbage does not end up in a log line.
const clipAt = 48

func invalid(name, value, reason, hint string) *task.FieldError {
	return &task.FieldError{Field: name, Value: clip(value), Reason: reason, Hint: hint}
}

func clip(s string) string { return wording.Cut(s, clipAt) }
