package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/onbeat/onbeat/config"
	"github.com/onbeat/onbeat/field"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// taskSpec is a task as flags or a line of a file describe it.
type taskSpec struct {
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload"`
	ID          *string         `json:"id"`
	In          string          `json:"in"`
	At          string          `json:"at"`
	Queue       *string         `json:"queue"`
	Priority    string          `json:"priority"`
	Timeout     string          `json:"timeout"`
	MaxAttempts *int            `json:"max_attempts"`
	Backoff     string          `json:"backoff"`
	BackoffCap  string          `json:"backoff_cap"`
	Unique      *string         `json:"unique"`
	UniqueFor   string          `json:"unique_for"`
	Key         *string         `json:"key"`
	KeyLimit    int             `json:"key_limit"`
	Keep        string          `json:"keep"`
}

// checker refuses, without asking Redis, a task that could not be enqueued.
type checker struct {
	limits task.Limits
	mux    *handlers.Mux
}

func newChecker(limits task.Limits) *checker { return &checker{limits: limits, mux: config.NewMux()} }

// task makes the task, or refuses it with a field error.
func (k *checker) task(s *taskSpec) (*task.Task, error) {
	t := task.New(s.Type, s.Payload)
	if len(s.Payload) == 0 {
		t.Payload = nil
	}
	t.KeyLimit = s.KeyLimit
	if s.MaxAttempts != nil {
		t.MaxAttempts = *s.MaxAttempts
		if err := task.CheckAttempts(t.MaxAttempts, task.DefaultMaxAttempts); err != nil {
			return nil, err
		}
	}
	for _, p := range []struct {
		field string
		value *string
		into  *string
	}{{"id", s.ID, &t.ID}, {"unique", s.Unique, &t.UniqueKey}, {"key", s.Key, &t.Key}, {"queue", s.Queue, &t.Queue}} {
		if p.value == nil {
			continue
		}
		if *p.value == "" {
			return nil, refuse(p.field, "", "empty", "leave it out, or give it a value")
		}
		*p.into = *p.value
	}
	if err := s.times(t); err != nil {
		return nil, err
	}
	var err error
	if t.Priority, err = task.ParsePriority(s.Priority); err != nil {
		return nil, err
	}
	if err := t.Validate(k.limits); err != nil {
		if f := field.Of(err); f.Field == "due" {
			f.Field = "at"
		}
		return nil, err
	}
	return t, config.CheckPayload(k.mux, t.Type, t.Payload, false)
}

// times reads the moment and the durations.
func (s *taskSpec) times(t *task.Task) error {
	for _, d := range []struct {
		field, value string
		into         *time.Duration
	}{
		{"in", s.In, &t.Delay}, {"timeout", s.Timeout, &t.Timeout}, {"backoff", s.Backoff, &t.Backoff.Base},
		{"backoff_cap", s.BackoffCap, &t.Backoff.Cap}, {"unique_for", s.UniqueFor, &t.UniqueFor}, {"keep", s.Keep, &t.Keep},
	} {
		if d.value == "" {
			continue
		}
		v, err := schedule.ParseDuration(d.value)
		if e := field.Of(err); e != nil {
			return refuse(d.field, e.Value, e.Reason, e.Hint)
		}
		*d.into = v
	}
	if s.Keep != "" && t.Keep == 0 {
		t.Keep = -1 // the user set it to zero and did not leave it out
	}
	switch {
	case s.UniqueFor != "" && s.Unique == nil:
		return refuse("unique_for", s.UniqueFor, "without a unique key", "set unique too")
	case s.In != "" && s.At != "":
		return refuse("at", s.At, "in and at exclude each other", "remove one of them")
	case s.At == "":
		return nil
	}
	at, err := task.ParseTime("at", s.At)
	if err != nil {
		return err
	}
	t.Apply(task.At(at))
	return nil
}

// parseSpec reads one line of a file of tasks, strictly.
func parseSpec(line []byte) (*taskSpec, error) {
	s := &taskSpec{}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	err := d.Decode(s)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return nil, &usageError{"more than one JSON value", "one task a line"}
		}
		return s, checkJSON(line, "", foldKey)
	}
	var typ *json.UnmarshalTypeError
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case unknown:
		name = strings.Trim(name, `"`)
		return nil, refuse(name, "", "unknown field", wording.Suggest(name, jsonFields(s)))
	case errors.As(err, &typ) && typ.Field != "":
		return nil, refuse(typ.Field, "", "must be "+wanted(typ)+", but is "+isNow(typ), "")
	case errors.As(err, &typ):
		return nil, &usageError{article(typ.Value) + ", not a task", `one JSON object a line, such as {"type":"echo"}`}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &usageError{"not JSON: it ends too early", `one JSON object a line, such as {"type":"echo"}`}
	}
	return nil, &usageError{"not JSON: " + strings.TrimPrefix(err.Error(), "json: "), `one JSON object a line, such as {"type":"echo"}`}
}

func jsonFields(v any) []string {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		names = append(names, f.Tag.Get("json"))
	}
	return names
}

// wanted returns the kind of value that a field of a task must have.
func wanted(typ *json.UnmarshalTypeError) string {
	if typ.Field == "priority" {
		return "text (low, normal or high)"
	}
	return wording.Kind(typ.Type)
}

// isNow returns the kind of value that the field has. For a number that is not whole or too large, it returns the number.
func isNow(typ *json.UnmarshalTypeError) string {
	if number, ok := strings.CutPrefix(typ.Value, "number "); ok {
		return number
	}
	return article(typ.Value)
}

func article(noun string) string {
	if strings.HasPrefix(noun, "array") || strings.HasPrefix(noun, "object") {
		return "an " + noun
	}
	return "a " + noun
}
