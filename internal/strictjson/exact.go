package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strconv"

	"github.com/onbeat/onbeat/field"
	"github.com/onbeat/onbeat/internal/wording"
)

// Exact refuses what [Decode] takes and a schema does not: a key that is a field's name in other letters, and null. The data must
// be one that Decode has read into a struct of type t.
func Exact(data []byte, t reflect.Type) error {
	return field.Join(exact(json.NewDecoder(bytes.NewReader(data)), t, "")...)
}

// exact reads one value.
func exact(d *json.Decoder, t reflect.Type, path string) (refused []error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		var any json.RawMessage
		_ = d.Decode(&any)
		return nil
	}
	token, err := d.Token()
	switch {
	case err != nil:
		return nil
	case token == nil && path != "":
		return []error{&field.Error{Field: path, Reason: "must be " + kindOf(t) + ", but is null", Hint: "leave it out"}}
	case token == json.Delim('['):
		for i := 0; d.More(); i++ {
			refused = append(refused, exact(d, t.Elem(), path+"["+strconv.Itoa(i)+"]")...)
		}
	case token == json.Delim('{'):
		for d.More() {
			key, _ := d.Token()
			refused = append(refused, member(d, t, path, key.(string))...)
		}
	default:
		return nil
	}
	_, _ = d.Token() // the end of the list or object
	return refused
}

// member reads the value of a key.
func member(d *json.Decoder, t reflect.Type, path, key string) []error {
	of := reflect.TypeFor[json.RawMessage]()
	if t.Kind() == reflect.Struct {
		names := Names(t)
		if !slices.Contains(names, key) {
			exact(d, of, "")
			return []error{&field.Error{Field: at(path, key), Reason: "unknown field", Hint: wording.Suggest(key, names)}}
		}
		f, _ := fieldOf(t, key)
		of = f.Type
	} else if t.Kind() == reflect.Map {
		of = t.Elem()
	}
	return exact(d, of, at(path, key))
}
