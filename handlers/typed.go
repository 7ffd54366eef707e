package handlers

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Typed makes a handler of a function that takes the payload decoded from JSON. Decoding is strict: Typed refuses a field
// that T does not have, and any text after the value. If the payload does not decode, the task is dead at once, with the
// reason, because another attempt would read the same bytes. [FromContext] returns the task itself.
//
// For an unknown field alone the run fails with [ErrUnknownField] and is retried like any other: after a rollback, or during a
// rollout, a newer release may know the field. With [Lenient], Typed ignores such a field. The first of several faults
// decides; text that is not JSON is dead in any case.
//
// An absent payload, or null, gives the zero T if T holds nothing that could be missing (struct{}, a pointer, map, slice or
// interface); for any other T it is refused. If T or *T has a method Validate() error, Typed calls it too. If T is []byte,
// it gets the payload unchanged, as [task.New] takes it.
//
// encoding/json cannot tell a missing field from a zero one: check required fields in Validate. An UnmarshalJSON must copy what it
// keeps, as encoding/json asks.
func Typed[T any](fn func(ctx context.Context, v T) error, opts ...TypedOption) TaskHandler {
	return typed[T]{fn: fn, lenient: slices.Contains(opts, Lenient)}
}

// A TypedOption changes how [Typed] reads payloads.
type TypedOption int

const (
	// Lenient ignores fields that T does not have. Then a misspelt field is not noticed either: neither when the task is enqueued,
	// nor when it runs.
	Lenient TypedOption = iota + 1
)

type typed[T any] struct {
	fn      func(ctx context.Context, v T) error
	lenient bool
}

func (h typed[T]) nilFunc() bool { return h.fn == nil } // see isNil

// Handle implements [TaskHandler].
func (h typed[T]) Handle(ctx context.Context, t *task.Task) error {
	v, err := h.decode(t.Payload)
	if err != nil {
		return refused(t.Payload, err)
	}
	if FromContext(ctx) != t {
		ctx = NewContext(ctx, t)
	}
	return h.fn(ctx, v)
}

// CheckPayload implements [PayloadChecker].
func (h typed[T]) CheckPayload(payload []byte) error {
	_, err := h.decode(payload)
	return err
}

func (h typed[T]) decode(payload []byte) (v T, err error) {
	if raw, ok := any(&v).(*[]byte); ok {
		*raw = payload
		return v, nil
	}
	if err := decodePayload(payload, &v, h.lenient); err != nil {
		return v, err
	}
	check, ok := any(&v).(validator) // also if Validate is a method of T, unless T is a pointer
	if !ok {
		if k := reflect.TypeFor[T]().Kind(); k == reflect.Pointer || k == reflect.Interface {
			check, ok = any(v).(validator)
		}
	}
	if !ok || isNilPointer(v) {
		return v, nil
	}
	if err := check.Validate(); err != nil {
		return v, within("payload", err)
	}
	return v, nil
}

type validator interface{ Validate() error }

// isNilPointer reports whether v is a nil pointer: T's own Validate may panic on it.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}

// within makes a [*task.FieldError] of err, whose field lies within the field parent.
func within(parent string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // one that is wrapped is one error
		var list []error
		for _, one := range joined.Unwrap() {
			list = append(list, within(parent, one))
		}
		return wording.Join(list...)
	}
	if f, ok := errors.AsType[*task.FieldError](err); ok {
		below := *f
		below.Field = parent + "." + f.Field
		return &below
	}
	return &task.FieldError{Field: parent, Reason: oneLine(err.Error(), maxPanicText)}
}
