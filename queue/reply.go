package queue

import (
	"fmt"
	"strconv"
)

// reply reads the array a script returned, value by value. The first thing that is not as expected is kept as err.
type reply struct {
	values []any
	at     int
	err    error
}

func newReply(v any) *reply {
	values, ok := v.([]any)
	if !ok {
		return &reply{err: fmt.Errorf("script returned %T, not an array", v)}
	}
	return &reply{values: values}
}

func (r *reply) more() bool { return r.err == nil && r.at < len(r.values) }

func (r *reply) next() any {
	if !r.more() {
		if r.err == nil {
			r.err = fmt.Errorf("script returned %d values, and one more was expected", len(r.values))
		}
		return nil
	}
	r.at++
	return r.values[r.at-1]
}

func (r *reply) int() int64 {
	switch v := r.next().(type) {
	case int64:
		return v
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil && r.err == nil {
			r.err = fmt.Errorf("script returned %q, not a number", v)
		}
		return n
	default:
		if r.err == nil {
			r.err = fmt.Errorf("script returned %T, not a number", v)
		}
		return 0
	}
}

func (r *reply) string() string {
	v := r.next()
	s, ok := v.(string)
	if !ok && r.err == nil {
		r.err = fmt.Errorf("script returned %T, not a string", v)
	}
	return s
}

func (r *reply) indexes() []int {
	var out []int
	for r.more() {
		out = append(out, int(r.int()))
	}
	return out
}
