// Package field helps with [task.FieldError]: it finds one in an error, names its place, and keeps secrets out of it.
package field

import (
	"errors"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Of is the refusal in err, or nil if it refuses no field.
func Of(err error) *task.FieldError {
	e, _ := errors.AsType[*task.FieldError](err)
	return e
}

// In returns err with a place in front of the name of each field that it refuses: "durability" makes "durability.timeout" of "timeout".
func In(place string, err error) error {
	return Rename(err, func(name string) string { return place + "." + name })
}

// Rename returns err with another name of each field that it refuses.
func Rename(err error, to func(name string) string) error {
	switch e := err.(type) { //nolint:errorlint // an error around a refusal has words of its own
	case *task.FieldError:
		renamed := *e
		renamed.Field = to(e.Field)
		return &renamed
	case interface{ Unwrap() []error }:
		list := e.Unwrap()
		out := make([]error, len(list))
		for i := range list {
			out[i] = Rename(list[i], to)
		}
		return wording.Join(out...)
	}
	return err
}

// Veil returns an error whose text has no secrets. The error wraps err; a [*task.FieldError] within it is found without secrets too.
func Veil(s *secret.Set, err error) error {
	if err == nil || s.Empty() {
		return err
	}
	return VeilAs(s, err.Error(), err)
}

// VeilAs is [Veil] with another text for the error.
func VeilAs(s *secret.Set, text string, err error) error { return veiled{err, s.Hide(text), s} }

// veiled is an error under a text without secrets.
type veiled struct {
	err  error
	text string
	set  *secret.Set
}

func (v veiled) Error() string { return v.text }
func (v veiled) Unwrap() error { return v.err }

// Veil hides the secrets in a text, for a caller that writes the errors within this one by themselves.
func (v veiled) Veil(text string) string { return v.set.Hide(text) }

// As finds a field error without secrets: its value would be shown.
func (v veiled) As(target any) bool {
	to, ok := target.(**task.FieldError)
	if !ok {
		return false
	}
	found := Of(v.err)
	if found == nil {
		return false
	}
	*to = &task.FieldError{Field: found.Field, Value: v.Veil(found.Value), Reason: v.Veil(found.Reason), Hint: found.Hint}
	return true
}
