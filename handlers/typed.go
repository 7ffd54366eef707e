package handlers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/onbeat/onbeat/field"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Typed makes a handler of a function that takes the payload decoded from JSON. Decoding is strict: Typed refuses a field
// that T does not have, and any text after the value. If the payload does not decode, the task is dead at once, with the
// reason, because another attempt would read the same bytes. [FromContext] returns the task itself.
//
// An absent payload, or null, gives the zero T if T holds nothing that could be missing (struct{}, a pointer, map, slice or
// interface); for any other T it is refused. If T or *T has a method Validate() error, Typed calls it too. If T is []byte,
// it gets the payload unchanged, as [task.New] takes it.
//
// encoding/json cannot tell a missing field from a zero one: check required fields in Validate.
func Typed[T any](fn func(ctx context.Context, v T) error) TaskHandler { return typed[T]{fn} }

type typed[T any] struct {
	fn func(ctx context.Context, v T) error
}

func (h typed[T]) nilFunc() bool { return h.fn == nil } // see isNil

// Handle implements [TaskHandler].
func (h typed[T]) Handle(ctx context.Context, t *task.Task) error {
	v, err := decodePayload[T](t.Payload)
	if err != nil {
		return Dead(err)
	}
	if FromContext(ctx) != t {
		ctx = NewContext(ctx, t)
	}
	return h.fn(ctx, v)
}

// CheckPayload implements [PayloadChecker].
func (h typed[T]) CheckPayload(payload []byte) error {
	_, err := decodePayload[T](payload)
	return err
}

func decodePayload[T any](payload []byte) (v T, err error) {
	if raw, ok := any(&v).(*[]byte); ok {
		*raw = payload
		return v, nil
	}
	if err := decodeStrict(payload, &v); err != nil {
		return v, err
	}
	check, ok := any(v).(validator)
	if !ok {
		check, ok = any(&v).(validator)
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
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // one that is wrapped is one error
		var list []error
		for _, one := range joined.Unwrap() {
			list = append(list, within(parent, one))
		}
		return field.Join(list...)
	}
	if f, ok := errors.AsType[*task.FieldError](err); ok {
		below := *f
		below.Field = parent + "." + f.Field
		return &below
	}
	return &task.FieldError{Field: parent, Reason: oneLine(err.Error(), maxPanicText)}
}

const payloadHint = "pass a JSON value with the fields of the handler"

// decodeStrict decodes a whole payload into v, a non-nil pointer. The error is a [*task.FieldError] without any value of
// the payload, because payloads hold secrets.
func decodeStrict(payload []byte, v any) error {
	blank := bytes.TrimSpace(payload)
	if len(blank) == 0 || string(blank) == "null" {
		if mayBeEmpty(reflect.TypeOf(v).Elem()) {
			return nil
		}
		return &task.FieldError{Field: "payload", Reason: "missing", Hint: payloadHint}
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return decodeError(err, reflect.TypeOf(v).Elem())
	}
	if _, err := d.Token(); err != io.EOF {
		return &task.FieldError{Field: "payload", Hint: "pass one JSON value",
			Reason: fmt.Sprintf("more text follows the JSON value, at byte %d", d.InputOffset())}
	}
	return nil
}

func mayBeEmpty(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return true
	case reflect.Struct:
		return t.NumField() == 0
	}
	return false
}

func decodeError(err error, into reflect.Type) error {
	if f, ok := errors.AsType[*task.FieldError](err); ok { // from an UnmarshalJSON of ours
		return f
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := "payload"
		if e.Field != "" {
			field += "." + e.Field
		}
		kind, _, _ := strings.Cut(e.Value, " ") // "number 123" would show the value
		return &task.FieldError{Field: field, Reason: fmt.Sprintf("want %s, got a JSON %s", typeName(e.Type), kind), Hint: payloadHint}
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &task.FieldError{Field: "payload", Reason: fmt.Sprintf("not JSON: %v, at byte %d", e, e.Offset), Hint: payloadHint}
	}
	if name, ok := strings.CutPrefix(err.Error(), `json: unknown field "`); ok {
		return &task.FieldError{Field: "payload." + oneLine(strings.TrimSuffix(name, `"`), 64), Reason: "unknown field",
			Hint: cmp.Or(wording.Suggest(strings.TrimSuffix(name, `"`), knownFields(into)), "check the spelling; unknown fields are refused")}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &task.FieldError{Field: "payload", Reason: "not JSON: it ends too early", Hint: payloadHint}
	}
	return &task.FieldError{Field: "payload", Reason: oneLine(err.Error(), maxPanicText), Hint: payloadHint}
}

// knownFields returns the fields that a payload may have. It returns none for a type with nested fields, because
// encoding/json does not say on which level it met the unknown one.
func knownFields(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous || hasFields(f.Type, 0):
			return nil
		case f.IsExported() && name != "-":
			names = append(names, cmp.Or(name, f.Name))
		}
	}
	return names
}

// hasFields reports whether values of a type are objects with fields, or hold such objects. A type that holds itself
// without end counts as one of those.
func hasFields(t reflect.Type, depth int) bool {
	switch t.Kind() {
	case reflect.Struct:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return depth > 8 || hasFields(t.Elem(), depth+1)
	}
	return false
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "list"
	}
	return t.String()
}
