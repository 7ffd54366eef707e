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
	list := []Field{{"name", "required", "names the schedule within the namespace", func(s *Schedule) any { return &s.Name }}}
	for _, f := range rule {
		list = append(list, Field{f.Name, f.Default, f.Doc, func(s *Schedule) any { return f.Of(&s.Rule) }})
	}
	return append(list, []Field{
		{"task", "required", "the type, which picks the handler: `echo`, `http`, `exec`, `sleep`, or one of your Go program", func(s *Schedule) any { return &s.Task }},
		{"payload", "none", "what the handler gets: see the payloads below", func(s *Schedule) any { return &s.Payload }},
		{"secret", "none", "the paths of its payload that are secret, besides those of its type", func(s *Schedule) any { return &s.Secret }},
		{"queue", "`default`", "where its tasks wait", func(s *Schedule) any { return &s.Queue }},
		{"priority", "`normal`", "`high`, `normal` or `low`", func(s *Schedule) any { return &s.Priority }},
		{"timeout", "`30m`", "how long one run may take", func(s *Schedule) any { return (*schedule.Duration)(&s.Timeout) }},
		{"max_attempts", "3", "runs of a slot that may begin; 1 means no retry", func(s *Schedule) any { return &s.MaxAttempts }},
		{"backoff", "`1s`", "the longest delay after the first failure, which doubles with each further one; in YAML, a mapping of `base` and `cap` says both", func(s *Schedule) any { return (*schedule.Duration)(&s.Backoff.Base) }},
		{"backoff_cap", "`1h`", "the longest delay of all", func(s *Schedule) any { return (*schedule.Duration)(&s.Backoff.Cap) }},
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
	_, err := form.Unmarshal(b, s.fields())
	return err
}
