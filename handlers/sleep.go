package handlers

import (
	"context"
	"encoding/json"
	"time"

	"github.com/onbeat/onbeat/task"
)

// Sleep returns a handler that only waits, for as long as the payload {"for":"3s"} says or until the context ends: then it
// fails with the cause. Use it to try things out.
func Sleep() TaskHandler {
	return Typed(func(ctx context.Context, p sleepPayload) error {
		timer := time.NewTimer(time.Duration(*p.For))
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

type sleepPayload struct {
	For *sleepTime `json:"for"`
}

type sleepTime time.Duration

const sleepHint = `a duration such as "3s"`

func (d *sleepTime) UnmarshalJSON(b []byte) error {
	bad := &task.FieldError{Field: "payload.for", Reason: "not a duration", Hint: sleepHint}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return bad
	}
	bad.Value = s
	v, err := parseDuration(s)
	if err != nil {
		return bad
	}
	if v < 0 {
		bad.Reason = "negative"
		return bad
	}
	*d = sleepTime(v)
	return nil
}

// Validate refuses a payload without a duration.
func (p sleepPayload) Validate() error {
	if p.For == nil {
		return &task.FieldError{Field: "for", Reason: "missing", Hint: sleepHint}
	}
	return nil
}
