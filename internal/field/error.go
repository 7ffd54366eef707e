// Package field has the one error by which bad input is refused. It is below every other package, so that all of them refuse
// in the same words.
package field

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ErrInvalid is matched by every [Error].
var ErrInvalid = errors.New("invalid")

// Error refuses one field of what was passed in.
type Error struct {
	Field  string // its name in YAML and JSON, and where it is: "schedules[3].every", "cron minute"
	Value  string // what was given; "" if nothing was. Error shows the first 60 bytes of a long one.
	Reason string // what is wrong with it
	Hint   string // what to write instead; "" if there is nothing to add
}

// Error is one line for a person.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Field)
	if e.Value != "" {
		b.WriteString(" " + strconv.Quote(shortened(e.Value)))
	}
	b.WriteString(": " + e.Reason)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Is matches [ErrInvalid].
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// Of is the refusal in err, or nil if it refuses no field.
func Of(err error) *Error {
	var e *Error
	errors.As(err, &e)
	return e
}

func shortened(s string) string {
	if len(s) <= 64 {
		return s
	}
	return Cut(s, 60)
}

// Cut shortens s to at most limit bytes and an ellipsis, and cuts no character in two.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// Join is errors.Join with a message of one line: "every \"0s\": zero; missed \"never\": unknown policy".
func Join(errs ...error) error {
	list := slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return joined(list)
}

type joined []error

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (j joined) Unwrap() []error { return j }
