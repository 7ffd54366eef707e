package handlers

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

const payloadHint = "pass a JSON value with the fields of the handler"

// decodePayload decodes a whole payload into v. Unless it is lenient, it refuses a field that T does not have. The error is a
// [*task.FieldError] without any value of the payload, because payloads hold secrets.
func decodePayload[T any](payload []byte, v *T, lenient bool) error {
	blank := bytes.TrimSpace(payload)
	if len(blank) == 0 || string(blank) == "null" {
		if mayBeEmpty(reflect.TypeFor[T]()) {
			return nil
		}
		return &task.FieldError{Field: "payload", Reason: "missing", Hint: payloadHint}
	}
	if decodePooled(payload, v, lenient) {
		return nil
	}
	var zero T
	*v = zero
	return decodeAnew(payload, v, lenient)
}

// decodeAnew decodes with a decoder that has read nothing before, so that the error has the right place in it.
func decodeAnew(payload []byte, v any, lenient bool) error {
	d := newDecoder(lenient)
	d.source.Reset(payload)
	if err := d.json.Decode(v); err != nil {
		return decodeError(err, payload, reflect.TypeOf(v).Elem())
	}
	if _, err := d.json.Token(); err != io.EOF {
		return &task.FieldError{Field: "payload", Hint: "pass one JSON value",
			Reason: fmt.Sprintf("more text follows the JSON value, at byte %d", d.json.InputOffset())}
	}
	return nil
}

// decoder reads one payload after the other. To make one costs more than to decode a short payload.
type decoder struct {
	json   *json.Decoder
	source bytes.Reader
}

func newDecoder(lenient bool) *decoder {
	d := &decoder{}
	d.json = json.NewDecoder(&d.source)
	if !lenient {
		d.json.DisallowUnknownFields()
	}
	return d
}

var (
	strictDecoders  = sync.Pool{New: func() any { return newDecoder(false) }}
	lenientDecoders = sync.Pool{New: func() any { return newDecoder(true) }}
)

// longestKept is the longest payload in bytes whose decoder is used again: its buffer is as long.
const longestKept = 64 << 10

// decodePooled decodes with a decoder that may have read payloads before, and reports whether that succeeded. A decoder that met
// an error, or a panic in an UnmarshalJSON, is not used again.
func decodePooled(payload []byte, v any, lenient bool) bool {
	pool := &strictDecoders
	if lenient {
		pool = &lenientDecoders
	}
	d, _ := pool.Get().(*decoder)
	d.source.Reset(payload)
	if d.json.Decode(v) != nil {
		return false
	}
	if _, err := d.json.Token(); err != io.EOF {
		return false
	}
	d.source.Reset(nil)
	if len(payload) <= longestKept {
		pool.Put(d)
	}
	return true
}

// unknownField refuses a payload for a field that a newer release may know.
type unknownField struct{ *task.FieldError }

func (e unknownField) Unwrap() error        { return e.FieldError }
func (e unknownField) Is(target error) bool { return target == ErrUnknownField }

// refused is the error of a run whose payload was refused: one that can be retried if a newer release may read the payload.
func refused(payload []byte, err error) error {
	unknown, ok := errors.AsType[unknownField](err)
	if !ok || !json.Valid(payload) {
		return Dead(err)
	}
	run := *unknown.FieldError
	run.Reason += ", which a newer release may know"
	return unknownField{&run}
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

func decodeError(err error, payload []byte, into reflect.Type) error {
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
		return unknownField{&task.FieldError{Field: "payload." + oneLine(strings.TrimSuffix(name, `"`), 64), Reason: ErrUnknownField.Error(),
			Hint: cmp.Or(wording.Suggest(strings.TrimSuffix(name, `"`), knownFields(into)), "check the spelling; unknown fields are refused")}}
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &task.FieldError{Field: "payload", Reason: "not JSON: it ends too early", Hint: payloadHint}
	}
	// An UnmarshalJSON, that of time.Time for example, may say what it could not read. The error is kept in Redis, where the
	// payload may be encrypted.
	var shown secret.Set
	for _, v := range secret.Values(payload, []string{"*"}) {
		if len(v) >= leastHidden {
			shown.Add(v)
		}
	}
	text := shown.HideStart(err.Error()[:min(len(err.Error()), 2*maxPanicText)], maxPanicText)
	return &task.FieldError{Field: "payload", Reason: oneLine(text, maxPanicText), Hint: payloadHint}
}

// leastHidden is the length of the shortest value that is hidden: a shorter one may be part of any word.
const leastHidden = 4

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
