package store

import (
	"fmt"
	"strconv"
)

// Reply reads the array that a script returned, value by value. Err is the first error, such as a missing value. After an
// error every value is zero.
type Reply struct {
	values []any
	at     int
	Err    error
}

// NewReply begins at the first value of the result of [Script.Run].
func NewReply(v any) *Reply {
	values, ok := v.([]any)
	if !ok {
		return &Reply{Err: fmt.Errorf("script returned %T, not an array", v)}
	}
	return &Reply{values: values}
}

// More reports whether there is another value.
func (r *Reply) More() bool { return r.Err == nil && r.at < len(r.values) }

// Next returns the next value, of any type.
func (r *Reply) Next() any {
	if !r.More() {
		if r.Err == nil {
			r.Err = fmt.Errorf("script returned %d values, one too few", len(r.values))
		}
		return nil
	}
	r.at++
	return r.values[r.at-1]
}

// Int returns the next value as a number. Redis sends some numbers as text.
func (r *Reply) Int() int64 {
	switch v := r.Next().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil && r.Err == nil {
			r.Err = fmt.Errorf("script returned %q, not a number", v)
		}
		return n
	default:
		if r.Err == nil {
			r.Err = fmt.Errorf("script returned %T, not a number", v)
		}
		return 0
	}
}

// Text returns the next value as text.
func (r *Reply) Text() string {
	v := r.Next()
	s, ok := v.(string)
	if !ok && r.Err == nil {
		r.Err = fmt.Errorf("script returned %T, not a string", v)
	}
	return s
}

// Indexes returns the values that are left, as numbers.
func (r *Reply) Indexes() []int {
	var out []int
	for r.More() {
		out = append(out, int(r.Int()))
	}
	return out
}
