package wording

import (
	"reflect"
	"strings"
)

// Kind returns what to call a value of a type: "a whole number".
func Kind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "a mapping"
	}
	return "text"
}

// WithHint returns a text, followed by its hint if there is one.
func WithHint(text, hint string) string {
	if hint == "" {
		return text
	}
	return text + " (" + hint + ")"
}

// OneLine joins the lines of a text.
func OneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
