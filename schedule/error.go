package schedule

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is what every error of this package matches: somebody asked for a
// rule, an expression or a duration that cannot be. Use errors.As with
// *[FieldError] to learn which.
var ErrInvalid = errors.New("invalid schedule")

// FieldError says what is wrong with one field, in words for a person.
type FieldError struct {
	Field  string // the field's name in JSON and YAML, then the part of it: "cron minute"
	Value  string // what was given, clipped if long; "" when nothing was
	Reason string // what is wrong with it
	Hint   string // what to write instead; may be ""
}

// Error returns one line: field, value, reason and, if there is one, the hint.
func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(e.Field)
	if e.Value != "" {
		b.WriteByte(' ')
		b.WriteString(strconv.Quote(e.Value))
	}
	b.WriteString(": ")
	b.WriteString(e.Reason)
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// Unwrap makes every FieldError match [ErrInvalid].
func (e *FieldError) Unwrap() error { return ErrInvalid }

// clipAt bounds what an error quotes of its input, so that a megabyte of
// garbage does not end up in a log line.
const clipAt = 48

func invalid(field, value, reason, hint string) *FieldError {
	return &FieldError{Field: field, Value: clip(value), Reason: reason, Hint: hint}
}

func clip(s string) string {
	if len(s) <= clipAt {
		return s
	}
	cut := clipAt
	for !utf8.RuneStart(s[cut]) && cut > clipAt-utf8.UTFMax {
		cut--
	}
	return s[:cut] + "..."
}
