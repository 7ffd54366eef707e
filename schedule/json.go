package schedule

import (
	"time"

	"github.com/onbeat/onbeat/internal/form"
)

// Field is a field of a rule as people write it, in YAML and in JSON.
type Field struct {
	Name string
	// Default and Doc are what the documentation says of it, in Markdown.
	Default, Doc string
	// Of points to the field, as encoding/json reads and writes it.
	Of func(*Rule) any
}

// Fields returns the fields of a rule, in the order in which they are written. A field is only ever added: a reader ignores unknown
// fields, and a missing field means its default.
func Fields() []Field { return fields }

var fields = []Field{
	{"every", "this or `cron`", "a fixed interval, from 1ms", func(r *Rule) any { return (*Duration)(&r.Every) }},
	{"cron", "this or `every`", "5 fields, or 6 with seconds: names, ranges, steps, `L W # ?`, `@hourly` and its like; in quotes", func(r *Rule) any { return &r.Cron }},
	{"timezone", "UTC", "the time zone of `cron`, such as `Asia/Seoul`", func(r *Rule) any { return &r.Timezone }},
	{"dst", "by the expression", "how `cron` treats daylight saving. `gap`, for times that do not exist: `skip`, or `after` (one slot after the gap). `overlap`, for times that come twice: `first`, `second` or `both`", func(r *Rule) any { return &r.DST }},
	{"start", "when the schedule is first applied", "`aligned` (of `every`): at multiples of the interval; or a time in RFC 3339", func(r *Rule) any { return &r.Start }},
	{"until", "no end", "the last instant that a slot may have, in RFC 3339", func(r *Rule) any { return &r.Until }},
	{"max_runs", "no limit", "how many slots the schedule has in all; slots that `overlap` drops count, missed slots do not", func(r *Rule) any { return &r.MaxRuns }},
	{"jitter", "`0s`", "the longest delay of a slot, at most `every`; the delay depends only on the name and the slot", func(r *Rule) any { return (*Duration)(&r.Jitter) }},
	{"missed", "`once`", "the policy for slots of a time without an instance. `once`: run the latest; `all`: run each that is no older than `catch_up`, after the slots that are on time; `skip`: run none", func(r *Rule) any { return &r.Missed }},
	{"catch_up", "`1h`", "how far back `missed: all` reaches", func(r *Rule) any { return (*Duration)(&r.CatchUp) }},
	{"overlap", "`allow`", "the policy while the previous run still goes on. `allow`: run beside it; `skip`: drop the slot; `queue`: one slot waits; `replace`: cancel the previous run", func(r *Rule) any { return &r.Overlap }},
}

func (r *Rule) fields() []form.Field {
	list := make([]form.Field, len(fields))
	for i := range fields {
		list[i] = form.Field{Name: fields[i].Name, At: fields[i].Of(r)}
	}
	return list
}

// MarshalJSON writes the fields that are set: durations as strings such as "1h30m", and Until in UTC. Equal rules may
// differ in JSON if only one has its defaults filled in; see [Rule.WithDefaults].
func (r Rule) MarshalJSON() ([]byte, error) { return form.Marshal(r.fields()) }

// UnmarshalJSON reads what MarshalJSON writes. It ignores unknown fields, and keeps unknown policies, which [Rule.Validate]
// then refuses. So an older release can read, show and write back what a newer one wrote, but cannot run it wrongly.
func (r *Rule) UnmarshalJSON(b []byte) error {
	*r = Rule{}
	return form.Unmarshal(b, r.fields(), nil)
}

// Duration is a length of time. In JSON it is text, such as "1h30m".
type Duration time.Duration

// MarshalText writes what [FormatDuration] does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(FormatDuration(time.Duration(d))), nil }

// UnmarshalText reads what [ParseDuration] takes.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	*d = Duration(v)
	return err
}
