package schedule

import "github.com/onbeat/onbeat/field"

// ErrInvalid is what every error of this package matches; see [field.ErrInvalid]. Use errors.As with *[FieldError] to learn
// which field is meant.
var ErrInvalid = field.ErrInvalid

// FieldError refuses one field of a rule; see [field.Error].
type FieldError = field.Error

// clipAt bounds what an error keeps of its input, so that a megabyte of garbage does not end up in a log line.
const clipAt = 48

func invalid(name, value, reason, hint string) *FieldError {
	return &FieldError{Field: name, Value: clip(value), Reason: reason, Hint: hint}
}

func clip(s string) string { return field.Cut(s, clipAt) }
