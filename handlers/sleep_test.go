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
	for payload, field := range map[string]string{
		`{}`: "payload.for", `{"for":3}`: "payload.for", `{"for":"soon"}`: "payload.for", `{"for":"-1s"}`: "payload.for",
		`{"for":"1s","fail":2}`: "payload.fail", ``: "payload",
	} {
		err := handlers.Sleep().Handle(t.Context(), &task.Task{Payload: []byte(payload)})
		if e, ok := errors.AsType[*task.FieldError](err); !ok || e.Field != field || !handlers.IsDead(err) {
			t.Errorf("%s: %v, want it dead for %s", payload, err, field)
		}
	}
}
