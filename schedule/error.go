package schedule

import "github.com/onbeat/onbeat/internal/field"

// ErrInvalid is matched by every error of this package; see [field.ErrInvalid]. Use errors.As with *[FieldError] to find
// out which field is invalid.
var ErrInvalid = field.ErrInvalid

// FieldError refuses one field of a rule; see [field.Error].
type FieldError = field.Error

// clipAt bounds how much of its input an error keeps, so that a megabyte of garbage does not end up in a log line.
const clipAt = 48

func invalid(name, value, reason, hint string) *FieldError {
	return &FieldError{Field: name, Value: clip(value), Reason: reason, Hint: hint}
}

func clip(s string) string { return field.Cut(s, clipAt) }
