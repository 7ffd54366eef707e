package store

import (
	"fmt"
	"strconv"
)

// Values is a reply that is read by position. A value that is missing at the end is zero.
type Values []any

// ValuesOf returns the result of [Script.Run] as Values. A number alone counts as an array of one.
func ValuesOf(v any) (Values, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case int64:
		return Values{v}, nil
	}
	return nil, fmt.Errorf("script returned %T, not an array", v)
}

// Int returns value i as a number, which Redis may send as text.
func (v Values) Int(i int) int64 {
	if i >= len(v) {
		return 0
	}
	switch v := v[i].(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

// Text returns value i as text.
func (v Values) Text(i int) string {
	if i >= len(v) {
		return ""
	}
	s, _ := v[i].(string)
	return s
}
