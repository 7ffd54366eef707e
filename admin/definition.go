package admin

import (
	"encoding/json"
	"time"

	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Definition is what a schedule says: when, and which task each slot becomes. Its fields are those of the config file.
type Definition struct {
	Name        string          `json:"name"`
	Task        string          `json:"task"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Secret      []string        `json:"secret,omitempty"`
	Queue       string          `json:"queue,omitempty"`
	Priority    string          `json:"priority,omitempty"`
	Timeout     Duration        `json:"timeout,omitzero"`
	MaxAttempts int             `json:"max_attempts,omitempty"`
	Backoff     Duration        `json:"backoff,omitzero"`
	BackoffCap  Duration        `json:"backoff_cap,omitzero"`

	Every    Duration         `json:"every,omitzero"`
	Cron     string           `json:"cron,omitempty"`
	Timezone string           `json:"timezone,omitempty"`
	DST      schedule.DST     `json:"dst,omitzero"`
	Start    string           `json:"start,omitempty"`
	Until    time.Time        `json:"until,omitzero"`
	MaxRuns  int64            `json:"max_runs,omitempty"`
	Jitter   Duration         `json:"jitter,omitzero"`
	Missed   schedule.Missed  `json:"missed,omitempty"`
	CatchUp  Duration         `json:"catch_up,omitzero"`
	Overlap  schedule.Overlap `json:"overlap,omitempty"`
}

// DefinitionOf returns what a schedule says.
func DefinitionOf(s *producer.Schedule) Definition {
	d := Definition{
		Name: s.Name, Task: s.Task, Payload: s.Payload, Secret: s.Secret, Queue: s.Queue, Timeout: Duration(s.Timeout), MaxAttempts: s.MaxAttempts,
		Backoff: Duration(s.Backoff.Base), BackoffCap: Duration(s.Backoff.Cap),
		Every: Duration(s.Every), Cron: s.Cron, Timezone: s.Timezone, DST: s.DST, Start: s.Start, Until: s.Until.UTC(),
		MaxRuns: s.MaxRuns, Jitter: Duration(s.Jitter), Missed: s.Missed, CatchUp: Duration(s.CatchUp), Overlap: s.Overlap,
	}
	if s.Priority != task.Normal {
		d.Priority = s.Priority.String()
	}
	return d
}

// Rule returns the part of the definition that says when.
func (d *Definition) Rule() schedule.Rule {
	return schedule.Rule{
		Every: time.Duration(d.Every), Cron: d.Cron, Timezone: d.Timezone, DST: d.DST, Start: d.Start, Until: d.Until,
		MaxRuns: d.MaxRuns, Jitter: time.Duration(d.Jitter), Missed: d.Missed, CatchUp: time.Duration(d.CatchUp), Overlap: d.Overlap,
	}
}

// Schedule returns the schedule that says the same. It does not validate it; only an unknown priority is refused.
func (d *Definition) Schedule() (producer.Schedule, error) {
	priority, err := task.ParsePriority(d.Priority)
	return producer.Schedule{
		Name: d.Name, Rule: d.Rule(), Task: d.Task, Payload: d.Payload, Secret: d.Secret, Queue: d.Queue, Priority: priority,
		Timeout: time.Duration(d.Timeout), MaxAttempts: d.MaxAttempts,
		Backoff: task.Backoff{Base: time.Duration(d.Backoff), Cap: time.Duration(d.BackoffCap)},
	}, err
}
