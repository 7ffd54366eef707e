package main

import (
	"reflect"
	"slices"
	"strings"
)

// suggest is the hint for a name that is not among the known ones.
func suggest(name string, known []string) string {
	if best := nearest(name, known); best != "" {
		return "did you mean " + best + "?"
	}
	if len(known) == 0 {
		return ""
	}
	return "known are " + strings.Join(known, ", ")
}

// nearest is the known name that a slip of the fingers makes of this one, or "".
func nearest(name string, known []string) string {
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < least && d < len(name) {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to change, add, drop or swap with a neighbour.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before, last []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before, last = last, row
		row = make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(y)]
}

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
