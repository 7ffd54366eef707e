package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/task"
)

// Sleep returns a handler that only waits, for as long as the payload {"for":"3s"} says or until the context ends: then it
// fails with the cause. With {"for":"3s","fail":0.2} a fifth of the runs fails. Use it to try things out.
func Sleep() TaskHandler {
	return Typed(func(ctx context.Context, p sleepPayload) error {
		timer := time.NewTimer(time.Duration(*p.For))
		defer timer.Stop()
		select {
		case <-timer.C:
			if rand.Float64() < p.Fail { //nolint:gosec // nothing is to be guessed
				return errSlept
			}
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// errSlept ends a run that was asked to fail.
var errSlept = errors.New("slept badly, as its payload asks")

type sleepPayload struct {
	For  *sleepTime `json:"for"`
	Fail float64    `json:"fail"`
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

// Validate refuses a payload without a duration, or with a share of failures that is none.
func (p sleepPayload) Validate() error {
	if p.For == nil {
		return &task.FieldError{Field: "for", Reason: "missing", Hint: sleepHint}
	}
	if p.Fail < 0 || p.Fail > 1 {
		return &task.FieldError{Field: "fail", Value: strconv.FormatFloat(p.Fail, 'g', -1, 64), Reason: "out of range", Hint: "0 to 1, such as 0.2 for a fifth of the runs"}
	}
	return nil
}
