package producer

import (
	"github.com/onbeat/onbeat/internal/form"
	"github.com/onbeat/onbeat/schedule"
)

// Field is a field of a schedule as people write it, in YAML and in JSON.
type Field struct {
	Name string
	// Default and Doc are what the documentation says of it, in Markdown.
	Default, Doc string
	// Of points to the field, as encoding/json reads and writes it.
	Of func(*Schedule) any
}

// Fields returns the fields of a schedule, in the order in which they are written. All that reads, shows, compares or documents
// schedules goes by this list.
func Fields() []Field { return fields }

var fields = fieldsOf(schedule.Fields())

func fieldsOf(rule []schedule.Field) []Field {
	list := []Field{{"name", "required", "the name of the schedule within the namespace", func(s *Schedule) any { return &s.Name }}}
	for _, f := range rule {
		list = append(list, Field{f.Name, f.Default, f.Doc, func(s *Schedule) any { return f.Of(&s.Rule) }})
	}
	return append(list, []Field{
		{"task", "required", "the task type, which selects the handler: `echo`, `http`, `exec`, `sleep`, or one of your Go program", func(s *Schedule) any { return &s.Task }},
		{"payload", "none", "the input of the handler: see the payloads below", func(s *Schedule) any { return &s.Payload }},
		{"secret", "none", "secret paths of the payload, besides those of the type", func(s *Schedule) any { return &s.Secret }},
		{"heartbeat", "none", "the URLs of a dead-man's switch: a mapping of `url`, `start` and `fail`, see [operations.md](operations.md#dead-mans-switches)", func(s *Schedule) any { return &s.Heartbeat }},
		{"queue", "`default`", "the queue in which its tasks wait", func(s *Schedule) any { return &s.Queue }},
		{"priority", "`normal`", "`high`, `normal` or `low`", func(s *Schedule) any { return &s.Priority }},
		{"timeout", "`30m`", "how long one run may take", func(s *Schedule) any { return (*schedule.Duration)(&s.Timeout) }},
		{"max_attempts", "by the gap", "how many runs of a slot may begin; 1: no retry. By default until the longest delays add up to half of the gap to the next slot, an hour at most; three at least, and 100 at most", func(s *Schedule) any { return &s.MaxAttempts }},
		{"backoff", "`1s`", "the longest delay after the first failure, by default less if slots follow each other within 6 s; it doubles with each further failure. In YAML, a mapping of `base` and `cap` sets both", func(s *Schedule) any { return (*schedule.Duration)(&s.Backoff.Base) }},
		{"backoff_cap", "`1h`", "the longest delay after any failure", func(s *Schedule) any { return (*schedule.Duration)(&s.Backoff.Cap) }},
	}...)
}

func (s *Schedule) fields() []form.Field {
	list := make([]form.Field, len(fields), len(fields)+4)
	for i := range fields {
		list[i] = form.Field{Name: fields[i].Name, At: fields[i].Of(s)}
	}
	return list
}

// MarshalJSON writes the fields that are set, as in YAML: durations as texts such as "1h30m".
func (s Schedule) MarshalJSON() ([]byte, error) { return form.Marshal(s.fields()) }

// UnmarshalJSON reads what MarshalJSON wrote. It ignores unknown fields.
func (s *Schedule) UnmarshalJSON(b []byte) error {
	*s = Schedule{}
	return form.Unmarshal(b, s.fields(), nil)
}
