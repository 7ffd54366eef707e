package strictjson

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Malformed reports a document that is not one JSON object. Its text names no field.
type Malformed struct {
	Text string // such as "not JSON: it ends too early", or "a list, not a task"
	More bool   // there is a second value behind the first
}

// Error returns the text.
func (e *Malformed) Error() string { return e.Text }

// mostRefused is how many fields of an object an error names at most: an object of millions of keys is refused in few words.
const mostRefused = 100

// Decode reads the one object in data into v, a pointer to a struct. The noun says what v is, in errors. An error is a
// [*Malformed], or a [*task.FieldError] for each field that is wrong, joined. Names of fields match as in encoding/json, without
// regard to case; see [Check] for what else it refuses.
func Decode(data []byte, v any, noun string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if err == nil && bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("null")) {
		return &Malformed{Text: "null, not a " + noun} // which encoding/json leaves the struct alone for
	}
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return &Malformed{Text: "more than one JSON value", More: true}
		}
		return Check(data, "", Fold)
	}
	var typ *json.UnmarshalTypeError
	if json.Valid(data) {
		if refused := fields(data, reflect.TypeOf(v).Elem(), ""); refused != nil {
			return refused
		}
	}
	switch {
	case errors.As(err, &typ):
		return &Malformed{Text: article(typ.Value) + ", not a " + noun}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &Malformed{Text: "not JSON: it ends too early"}
	}
	return &Malformed{Text: "not JSON: " + strings.TrimPrefix(err.Error(), "json: ")}
}

// fields returns the refusals of an object that cannot be read into a struct of type t: one for each field that is wrong. It
// returns nil if data is no object.
func fields(data []byte, t reflect.Type, path string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil
	}
	var refused []error
	for d.More() && len(refused) < mostRefused {
		token, err := d.Token()
		key, isText := token.(string)
		var value json.RawMessage
		if err != nil || !isText || d.Decode(&value) != nil {
			return nil
		}
		f, known := fieldOf(t, key)
		if !known {
			refused = append(refused, &task.FieldError{Field: at(path, key), Reason: "unknown field", Hint: wording.Suggest(key, Names(t))})
			continue
		}
		if err := refusal(value, f, at(path, nameOf(f))); err != nil {
			refused = append(refused, err)
		}
	}
	return wording.Join(refused...)
}

// refusal returns why a value cannot be that of a field, or nil.
func refusal(value json.RawMessage, f reflect.StructField, path string) error {
	into := reflect.New(f.Type)
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	err := d.Decode(into.Interface())
	if err == nil {
		return nil
	}
	if isObject(f.Type) {
		if refused := fields(value, f.Type, path); refused != nil {
			return refused
		}
	}
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		return &task.FieldError{Field: path, Reason: "must be " + wanted(typ.Type, f) + ", but is " + isNow(typ)}
	}
	if own := field.Of(err); own != nil {
		return &task.FieldError{Field: path, Value: own.Value, Reason: own.Reason, Hint: own.Hint}
	}
	var moment *time.ParseError
	if errors.As(err, &moment) {
		return &task.FieldError{Field: path, Value: strings.Trim(moment.Value, `"`), Reason: "not a time", Hint: "RFC 3339, such as 2030-01-31T09:00:00Z"}
	}
	return &task.FieldError{Field: path, Reason: strings.TrimPrefix(err.Error(), "json: ")}
}

// isObject reports whether values of a type are objects whose fields are those of the struct.
func isObject(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() == reflect.Struct && !p.Implements(reflect.TypeFor[json.Unmarshaler]()) &&
		!p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// Names returns the names in JSON of the fields of a struct.
func Names(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name := nameOf(f); name != "" && f.IsExported() && !f.Anonymous {
			names = append(names, name)
		}
	}
	return names
}

func nameOf(f reflect.StructField) string {
	tag := f.Tag.Get("json")
	if tag == "-" { // it is not in JSON
		return ""
	}
	name, _, _ := strings.Cut(tag, ",")
	return name
}

// fieldOf returns the field of a struct that encoding/json reads a key into.
func fieldOf(t reflect.Type, key string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if name := nameOf(f); name != "" && !f.Anonymous && (name == key || Fold(name) == Fold(key)) {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func at(path, key string) string {
	if path == "" && key != "" {
		return wording.Cut(key, longestShown)
	}
	if path == "" {
		return shownKey(key)
	}
	return path + "." + shownKey(key)
}

// wanted returns the kind of value that a field must have. A field with the tag enum lists its words.
func wanted(t reflect.Type, f reflect.StructField) string {
	words := strings.Split(f.Tag.Get("enum"), ",")
	if n := len(words); n > 1 {
		return "text (" + strings.Join(words[:n-1], ", ") + " or " + words[n-1] + ")"
	}
	return kindOf(t)
}

// kindOf returns what to call a value of a type in JSON.
func kindOf(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "text"
	}
	return wording.Kind(t)
}

// isNow returns the kind of value that the field has. For a number that is not whole or too large, it returns the number.
func isNow(typ *json.UnmarshalTypeError) string {
	if number, ok := strings.CutPrefix(typ.Value, "number "); ok {
		return wording.Cut(number, longestShown)
	}
	return article(typ.Value)
}

func article(noun string) string {
	if strings.HasPrefix(noun, "array") || strings.HasPrefix(noun, "object") {
		return "an " + noun
	}
	return "a " + noun
}
