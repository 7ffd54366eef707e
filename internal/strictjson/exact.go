package strictjson

import (
	"encoding/json"
	"reflect"
	"strconv"
	"sync"

	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

// Exact refuses what [Decode] takes and a schema does not: a key that is a field's name in other letters, and null. The data must
// be one that Decode has read into a struct of type t.
func Exact(data []byte, t reflect.Type) error {
	return wording.Join(exact(&lexer{data: data}, t, "")...)
}

// exact reads one value. It stops at mostRefused refusals, wherever it is then.
func exact(l *lexer, t reflect.Type, path string) (refused []error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[json.RawMessage]() {
		l.skip()
		return nil
	}
	switch k, _ := l.next(); {
	case k == 'n' && path != "":
		return []error{&task.FieldError{Field: path, Reason: "must be " + kindOf(t) + ", but is null", Hint: "leave it out"}}
	case k == '[':
		for i := 0; l.more() && len(refused) < mostRefused; i++ {
			refused = append(refused, exact(l, t.Elem(), path+"["+strconv.Itoa(i)+"]")...)
		}
	case k == '{':
		for l.more() && len(refused) < mostRefused {
			_, key := l.next()
			refused = append(refused, member(l, t, path, textOf(key))...)
		}
	default:
		return nil
	}
	l.next() // the end of the list or object
	return refused
}

// member reads the value of a key.
func member(l *lexer, t reflect.Type, path, key string) []error {
	of := reflect.TypeFor[json.RawMessage]()
	if t.Kind() == reflect.Struct {
		typ, ok := typesOf(t)[key]
		if !ok {
			l.skip()
			return []error{&task.FieldError{Field: at(path, key), Reason: "unknown field", Hint: wording.Suggest(key, Names(t))}}
		}
		of = typ
	} else if t.Kind() == reflect.Map {
		of = t.Elem()
	}
	return exact(l, of, at(path, key))
}

// known has the types of the fields of each struct that was read, by their names in JSON: a batch has thousands of values of one.
var known sync.Map // reflect.Type → map[string]reflect.Type

func typesOf(t reflect.Type) map[string]reflect.Type {
	if types, ok := known.Load(t); ok {
		return types.(map[string]reflect.Type)
	}
	types := map[string]reflect.Type{}
	for _, name := range Names(t) {
		f, _ := fieldOf(t, name)
		types[name] = f.Type
	}
	known.Store(t, types)
	return types
}
