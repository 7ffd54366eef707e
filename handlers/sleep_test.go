package handlers_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/task"
)

func TestSleep_sleepsForAsLongAsItWasTold(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]time.Duration{`{"for":"3s"}`: 3 * time.Second, `{"for":"0s"}`: 0, `{"for":"1m0.5s"}`: 60500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			if err := handlers.Sleep().Handle(t.Context(), &task.Task{Payload: []byte(payload)}); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took != want {
				t.Errorf("%s took %s", payload, took)
			}
		})
	}
}

func TestSleep_failsAsOftenAsItWasTold(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]bool{`{"for":"0s","fail":1}`: true, `{"for":"0s","fail":0}`: false} {
		err := handlers.Sleep().Handle(t.Context(), &task.Task{Payload: []byte(payload)})
		if (err != nil) != want || handlers.IsDead(err) {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

func TestSleep_wakesWithTheCause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(io.EOF) })
		start := time.Now()
		if err := handlers.Sleep().Handle(ctx, &task.Task{Payload: []byte(`{"for":"1h"}`)}); err != io.EOF {
			t.Errorf("Handle = %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %s", took)
		}
	})
}

func TestSleep_refuses(t *testing.T) {
	t.Parallel()
	const hint = ` (a duration such as "3s")`
	for payload, want := range map[string]string{
		`{}`:                    "payload.for: missing" + hint,
		`{"for":null}`:          "payload.for: missing" + hint,
		`{"for":3}`:             "payload.for: not a duration" + hint,
		`{"for":"soon"}`:        `payload.for "soon": not a duration` + hint,
		`{"for":"-1s"}`:         `payload.for "-1s": negative` + hint,
		`{"for":"1s","fail":2}`: `payload.fail "2": out of range (0 to 1, such as 0.2 for a fifth of the runs)`,
		``:                      "payload: missing (pass a JSON value with the fields of the handler)",
	} {
		err := handlers.Sleep().Handle(t.Context(), &task.Task{Payload: []byte(payload)})
		if err == nil || err.Error() != want || !handlers.IsDead(err) || !errors.Is(err, task.ErrInvalid) {
			t.Errorf("%s: %v\nwant %s", payload, err, want)
		}
	}
}
