package schedule

import (
	"encoding/json"
	"time"
)

// wire is a Rule in JSON. Fields are only ever added: a reader ignores unknown fields, and a missing field means its
// default.
type wire struct {
	Every    jsonDuration `json:"every,omitzero"`
	Cron     string       `json:"cron,omitempty"`
	Timezone string       `json:"timezone,omitempty"`
	DST      DST          `json:"dst,omitzero"`
	Start    string       `json:"start,omitempty"`
	Until    time.Time    `json:"until,omitzero"`
	MaxRuns  int64        `json:"max_runs,omitempty"`
	Jitter   jsonDuration `json:"jitter,omitzero"`
	Missed   Missed       `json:"missed,omitempty"`
	CatchUp  jsonDuration `json:"catch_up,omitzero"`
	Overlap  Overlap      `json:"overlap,omitempty"`
}

// MarshalJSON writes the fields that are set: durations as strings such as "1h30m", and Until in UTC. Equal rules may
// differ in JSON if only one has its defaults filled in; see [Rule.WithDefaults].
func (r Rule) MarshalJSON() ([]byte, error) {
	return json.Marshal(wire{
		Every: jsonDuration(r.Every), Cron: r.Cron, Timezone: r.Timezone, DST: r.DST,
		Start: r.Start, Until: r.Until.UTC(), MaxRuns: r.MaxRuns, Jitter: jsonDuration(r.Jitter),
		Missed: r.Missed, CatchUp: jsonDuration(r.CatchUp), Overlap: r.Overlap,
	})
}

// UnmarshalJSON reads what MarshalJSON writes. It ignores unknown fields, and keeps unknown policies, which [Rule.Validate]
// then refuses. So an older release can read, show and write back what a newer one wrote, but cannot run it wrongly.
func (r *Rule) UnmarshalJSON(b []byte) error {
	var w wire
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*r = Rule{
		Every: time.Duration(w.Every), Cron: w.Cron, Timezone: w.Timezone, DST: w.DST,
		Start: w.Start, Until: w.Until, MaxRuns: w.MaxRuns, Jitter: time.Duration(w.Jitter),
		Missed: w.Missed, CatchUp: time.Duration(w.CatchUp), Overlap: w.Overlap,
	}
	return nil
}

type jsonDuration time.Duration

func (d jsonDuration) MarshalText() ([]byte, error) {
	return []byte(FormatDuration(time.Duration(d))), nil
}

func (d *jsonDuration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	*d = jsonDuration(v)
	return err
}
