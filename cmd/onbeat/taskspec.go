package main

import (
	"errors"

	"github.com/onbeat/onbeat/admin"
	"github.com/onbeat/onbeat/cmd/onbeat/internal/config"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/strictjson"
	"github.com/onbeat/onbeat/task"
)

// checker refuses, without asking Redis, a task that could not be enqueued.
type checker struct {
	limits task.Limits
	mux    *handlers.Mux
}

func newChecker(limits task.Limits) *checker { return &checker{limits: limits, mux: config.NewMux()} }

// task makes the task, or refuses it with a field error.
func (k *checker) task(s *admin.TaskSpec) (*task.Task, error) {
	t, err := s.Task(k.limits)
	if err != nil {
		return nil, err
	}
	return t, handlers.Hide(t, config.CheckPayload(k.mux, t.Type, t.Payload, false))
}

// parseSpec reads one line of a file of tasks, strictly.
func parseSpec(line []byte) (*admin.TaskSpec, error) {
	s := &admin.TaskSpec{}
	err := strictjson.Decode(line, s, "task")
	var bad *strictjson.Malformed
	switch {
	case !errors.As(err, &bad):
		return s, err
	case bad.More:
		return nil, &usageError{bad.Text, "one task a line"}
	}
	return nil, &usageError{bad.Text, `one JSON object a line, such as {"type":"echo"}`}
}
