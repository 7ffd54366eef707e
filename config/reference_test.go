package config

import (
	"reflect"
	"slices"
	"testing"

	"github.com/onbeat/onbeat/internal/page"
)

// fieldsBelow are the fields that a file may have below a path: those with a value of their own, and those that only hold others.
func fieldsBelow(t reflect.Type, path string) (values, holders []string) {
	for i, name := range fieldsOf(t) {
		name, inner := below(path, name), t.Field(i).Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() != reflect.Struct {
			values = append(values, name)
			continue
		}
		more, within := fieldsBelow(inner, name)
		values, holders = append(values, more...), append(append(holders, name), within...)
	}
	return values, holders
}

func TestReference_listsEachField(t *testing.T) {
	t.Parallel()
	for heading, typ := range map[string]reflect.Type{
		"## Config": reflect.TypeFor[settings](), "### Schedules": reflect.TypeFor[scheduleSettings](),
		"### Tokens of the API": reflect.TypeFor[tokenSettings](), "### Notifications": reflect.TypeFor[notifySettings](),
	} {
		values, holders := fieldsBelow(typ, "")
		listed := page.Listed(t, page.Table(t, "../docs/reference.md", heading))
		listed = slices.DeleteFunc(listed, func(name string) bool { return slices.Contains(holders, name) })
		page.Compare(t, heading, listed, values)
	}
}
