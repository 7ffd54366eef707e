package admin

import (
	"encoding/json"
	"time"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// TaskSpec is a task to add, as a line of a file or a request describes it. Durations and moments are text, as people write
// them. A field that is left out has its default.
type TaskSpec struct {
	Type        string          `json:"type"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	ID          *string         `json:"id,omitempty"`
	In          string          `json:"in,omitempty"` // due after this time from now
	At          string          `json:"at,omitempty"` // due at this moment, in RFC 3339
	Queue       *string         `json:"queue,omitempty"`
	Priority    string          `json:"priority,omitempty" enum:"low,normal,high"`
	Timeout     string          `json:"timeout,omitempty"`
	MaxAttempts *int            `json:"max_attempts,omitempty"`
	Backoff     string          `json:"backoff,omitempty"`
	BackoffCap  string          `json:"backoff_cap,omitempty"`
	Unique      *string         `json:"unique,omitempty"`
	UniqueFor   string          `json:"unique_for,omitempty"`
	Key         *string         `json:"key,omitempty"`
	KeyLimit    int             `json:"key_limit,omitempty"`
	Keep        string          `json:"keep,omitempty"`
	Secret      []string        `json:"secret,omitempty"` // paths of the payload; see task.Secret
	// Trace is the W3C traceparent of the span that the task continues, and TraceState the tracestate that goes with it.
	Trace      string `json:"trace,omitempty"`
	TraceState string `json:"tracestate,omitempty"`
}

// SpecOf returns what to write so that [TaskSpec.Task] makes the same task. A payload that is not JSON, and fields that
// only a scheduled task has, cannot be written.
func SpecOf(t *task.Task) TaskSpec {
	s := TaskSpec{
		Type: t.Type, Payload: t.Payload, ID: unlessEmpty(t.ID), In: spanOf(t.Delay), Queue: unlessEmpty(t.Queue),
		Timeout: spanOf(t.Timeout), Backoff: spanOf(t.Backoff.Base), BackoffCap: spanOf(t.Backoff.Cap),
		Unique: unlessEmpty(t.UniqueKey), Key: unlessEmpty(t.Key), KeyLimit: t.KeyLimit, Keep: spanOf(t.Keep),
		Secret: t.Secret, Trace: t.Trace, TraceState: t.TraceState,
	}
	if t.MaxAttempts != 0 {
		s.MaxAttempts = &t.MaxAttempts
	}
	if t.Priority != task.Normal {
		s.Priority = t.Priority.String()
	}
	if t.UniqueKey != "" {
		s.UniqueFor = spanOf(t.UniqueFor)
	}
	if t.Keep < 0 {
		s.Keep = "0s"
	}
	if !t.Due.IsZero() {
		s.At, s.In = t.Due.UTC().Format(time.RFC3339Nano), ""
	}
	return s
}

func unlessEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func spanOf(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return schedule.FormatDuration(d)
}

// Task makes the task, or refuses it with a [*task.FieldError] for each field that is wrong.
func (s *TaskSpec) Task(limits task.Limits) (*task.Task, error) {
	t := task.New(s.Type, s.Payload)
	if len(s.Payload) == 0 {
		t.Payload = nil
	}
	t.KeyLimit, t.Secret, t.Trace, t.TraceState = s.KeyLimit, s.Secret, s.Trace, s.TraceState
	var refused []error // a refused field is left out of the task, so that it is refused once
	if s.MaxAttempts != nil {
		if err := task.CheckAttempts(*s.MaxAttempts); err != nil {
			refused = append(refused, err)
		} else {
			t.MaxAttempts = *s.MaxAttempts
		}
	}
	for _, p := range []struct {
		field string
		value *string
		into  *string
	}{{"id", s.ID, &t.ID}, {"unique", s.Unique, &t.UniqueKey}, {"key", s.Key, &t.Key}, {"queue", s.Queue, &t.Queue}} {
		switch {
		case p.value == nil:
		case *p.value == "":
			refused = append(refused, &task.FieldError{Field: p.field, Reason: "empty", Hint: "leave it out, or give it a value"})
		default:
			*p.into = *p.value
		}
	}
	var err error
	if t.Priority, err = task.ParsePriority(s.Priority); err != nil {
		t.Priority, refused = task.Normal, append(refused, err)
	}
	refused = append(refused, s.durations(t), s.moment(t), t.Validate(limits))
	if err := wording.Join(refused...); err != nil {
		return nil, err
	}
	return t, nil
}

// durations reads the durations.
func (s *TaskSpec) durations(t *task.Task) error {
	var refused []error
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
			refused = append(refused, &task.FieldError{Field: d.field, Value: e.Value, Reason: e.Reason, Hint: e.Hint})
			continue
		}
		if d.field == "unique_for" && s.Unique == nil {
			refused = append(refused, &task.FieldError{Field: d.field, Value: d.value, Reason: "without a unique key", Hint: "set unique too"})
		}
		*d.into = v
	}
	if s.Keep != "" && t.Keep == 0 {
		t.Keep = -1 // the user set it to zero and did not leave it out
	}
	return wording.Join(refused...)
}

// moment reads when the task is due.
func (s *TaskSpec) moment(t *task.Task) error {
	switch {
	case s.At == "":
		return nil
	case s.In != "":
		return &task.FieldError{Field: "at", Value: s.At, Reason: "in and at exclude each other", Hint: "remove one of them"}
	}
	at, err := task.ParseTime("at", s.At)
	if err != nil {
		return err
	}
	t.Apply(task.At(at))
	return nil
}
