package config

import (
	"reflect"
	"slices"
	"strings"
)

// fieldsAt are the names of the fields that may stand at a path of a type: "schedules[2].dst".
func fieldsAt(t reflect.Type, path string) []string {
	if t == nil {
		return nil
	}
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Slice, reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			i := slices.IndexFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return yamlName(f) == step })
			if i < 0 {
				return nil
			}
			t = reflect.VisibleFields(t)[i].Type
		default:
			return nil
		}
	}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if n := yamlName(f); n != "" {
			names = append(names, n)
		}
	}
	return names
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	if name == "-" {
		return ""
	}
	return name
}
