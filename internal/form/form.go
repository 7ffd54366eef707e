// Package form writes a value as a JSON object, and reads it, by a list of its fields. The list serves whatever else has to know
// the fields: it is typed once. A leader reads very many schedules at once, so that this takes little memory.
package form

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// Field is a field of a value: its name, and a pointer to it that encoding/json can write and read.
type Field struct {
	Name string
	At   any
}

// Marshal writes the fields that are set. Times are written in UTC.
func Marshal(fields []Field) ([]byte, error) {
	b := append(make([]byte, 0, 256), '{')
	var err error
	for _, f := range fields {
		if !isSet(f.At) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), f.Name...), `":`...)
		if b, err = appendValue(b, f.At); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return append(b, '}'), nil
}

func isSet(at any) bool {
	switch v := at.(type) {
	case *string:
		return *v != ""
	case *json.RawMessage:
		return len(*v) > 0
	case *[]string:
		return len(*v) > 0
	case *time.Time:
		return !v.IsZero()
	}
	return !reflect.ValueOf(at).Elem().IsZero()
}

func appendValue(b []byte, at any) ([]byte, error) {
	switch v := at.(type) {
	case *string:
		if isPlain([]byte(*v)) {
			return append(append(append(b, '"'), *v...), '"'), nil
		}
	case *time.Time:
		at = v.UTC()
	case encoding.TextMarshaler:
		text, err := v.MarshalText()
		if err == nil && isPlain(text) {
			return append(append(append(b, '"'), text...), '"'), nil
		}
	case *int64:
		return strconv.AppendInt(b, *v, 10), nil
	case *int:
		return strconv.AppendInt(b, int64(*v), 10), nil
	}
	value, err := json.Marshal(at)
	return append(b, value...), err
}

// isPlain reports whether a text is the same in JSON.
func isPlain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// Unmarshal reads the fields that an object has, and leaves the others alone. Unless rest is nil, it puts there the members that are
// none of the fields.
func Unmarshal(object []byte, fields []Field, rest *map[string]json.RawMessage) error {
	object = bytes.TrimLeft(object, " \t\r\n")
	if !json.Valid(object) || object[0] != '{' {
		return json.Unmarshal(object, new(map[string]json.RawMessage)) // which says what it is
	}
	for name, value := range members(object) {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == string(name) })
		if i < 0 {
			if rest == nil {
				continue
			}
			if *rest == nil {
				*rest = map[string]json.RawMessage{}
			}
			(*rest)[string(name)] = bytes.Clone(value)
			continue
		}
		if err := setValue(fields[i].At, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func setValue(at any, value []byte) error {
	if n := len(value) - 1; value[0] == '"' && isPlain(value[1:n]) {
		text := value[1:n]
		if v, ok := at.(encoding.TextUnmarshaler); ok {
			return v.UnmarshalText(text)
		}
		if v := reflect.ValueOf(at).Elem(); v.Kind() == reflect.String {
			v.SetString(string(text))
			return nil
		}
	}
	switch v := at.(type) {
	case *json.RawMessage:
		*v = bytes.Clone(value)
		return nil
	case *int:
		if n, err := strconv.Atoi(string(value)); err == nil {
			*v = n
			return nil
		}
	}
	return json.Unmarshal(value, at)
}

// members yields the names and values of a valid object.
func members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for rest := next(object[1:]); rest[0] != '}'; {
			key := rest[:end(rest)]
			rest = next(rest[len(key):])
			value := rest[:end(rest)]
			rest = next(rest[len(value):])
			name := key[1 : len(key)-1]
			if !isPlain(name) {
				var text string
				_ = json.Unmarshal(key, &text) // it is valid
				name = []byte(text)
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

// next skips what lies between keys and values.
func next(b []byte) []byte { return bytes.TrimLeft(b, " \t\r\n,:") }

// end returns where a value ends.
func end(b []byte) int {
	depth, inText := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case inText:
			if c == '\\' {
				i++
			}
			inText = c != '"'
			if !inText && depth == 0 {
				return i + 1
			}
		case c == '"':
			inText = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return i + min(depth+1, 1)
			}
		case depth == 0 && bytes.IndexByte([]byte(" \t\r\n,:"), c) >= 0:
			return i
		}
	}
	return len(b)
}

// Join returns objects as one.
func Join(objects ...[]byte) []byte {
	size := 2
	for _, o := range objects {
		size += len(o)
	}
	all := append(make([]byte, 0, size), '{')
	for _, o := range objects {
		if len(o) <= len("{}") {
			continue
		}
		if len(all) > 1 {
			all = append(all, ',')
		}
		all = append(all, o[1:len(o)-1]...)
	}
	return append(all, '}')
}
