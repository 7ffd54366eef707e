package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// scheduleConfig is one entry of schedules.
type scheduleConfig struct {
	Name text `yaml:"name"`

	Every    interval `yaml:"every"`
	Cron     text     `yaml:"cron"`
	Timezone text     `yaml:"timezone"`
	DST      struct {
		Gap     text `yaml:"gap"`
		Overlap text `yaml:"overlap"`
	} `yaml:"dst"`
	Start   text     `yaml:"start"`
	Until   text     `yaml:"until"`
	MaxRuns integer  `yaml:"max_runs"`
	Jitter  duration `yaml:"jitter"`
	Missed  text     `yaml:"missed"`
	CatchUp duration `yaml:"catch_up"`
	Overlap text     `yaml:"overlap"`

	Task        text          `yaml:"task"`
	Payload     any           `yaml:"payload"`
	Queue       text          `yaml:"queue"`
	Priority    text          `yaml:"priority"`
	Timeout     duration      `yaml:"timeout"`
	MaxAttempts integer       `yaml:"max_attempts"`
	Backoff     backoffConfig `yaml:"backoff"`
}

// schedule is what the entry says.
func (c *scheduleConfig) schedule() (producer.Schedule, error) {
	s := producer.Schedule{
		Name: string(c.Name),
		Rule: schedule.Rule{
			Every: time.Duration(c.Every), Cron: string(c.Cron), Timezone: string(c.Timezone),
			DST:   schedule.DST{Gap: schedule.GapPolicy(c.DST.Gap), Overlap: schedule.OverlapPolicy(c.DST.Overlap)},
			Start: string(c.Start), MaxRuns: int64(c.MaxRuns), Jitter: time.Duration(c.Jitter),
			Missed: schedule.Missed(c.Missed), CatchUp: time.Duration(c.CatchUp), Overlap: schedule.Overlap(c.Overlap),
		},
		Task: string(c.Task), Queue: string(c.Queue), Timeout: time.Duration(c.Timeout), MaxAttempts: int(c.MaxAttempts),
		Backoff: task.Backoff{Base: time.Duration(c.Backoff.Base), Cap: time.Duration(c.Backoff.Cap)},
	}
	var err error
	if c.Until != "" {
		if s.Until, err = parseTime("until", string(c.Until)); err != nil {
			return s, err
		}
	}
	if s.Priority, err = task.ParsePriority(string(c.Priority)); err != nil {
		return s, err
	}
	if c.Payload != nil {
		if s.Payload, err = json.Marshal(c.Payload); err != nil {
			return s, refuse("payload", "", "cannot be written as JSON", "no infinite numbers, and text as keys")
		}
	}
	return s, nil
}

// checkSchedules makes schedules of entries and refuses, with its place in the file, the first that could not run.
// With known, so is a task type that the program does not bring.
func checkSchedules(f *yamlFile, entries []scheduleConfig, limits task.Limits, known bool) ([]producer.Schedule, error) {
	mux := builtinMux()
	list := make([]producer.Schedule, 0, len(entries)) // never nil: no schedules is a declaration too
	first := map[string]int{}
	for i := range entries {
		path := fmt.Sprintf("schedules[%d]", i)
		s, err := entries[i].schedule()
		if err == nil {
			err = s.Validate(limits)
		}
		if err == nil {
			err = checkPayload(mux, s.Task, s.Payload, known)
		}
		if before, twice := first[s.Name]; err == nil && twice {
			err = refuse("name", s.Name, "declared twice", fmt.Sprintf("line %d has it too; give each schedule a name of its own", f.line(fmt.Sprintf("schedules[%d].name", before))))
		}
		if err != nil {
			return nil, f.at(path, err)
		}
		first[s.Name] = i
		list = append(list, s)
	}
	return list, nil
}

// checkPayload asks the handler of a type that the program brings. Others pass, unless all must be known.
func checkPayload(mux *handlers.Mux, typ string, payload []byte, known bool) error {
	err := mux.CheckPayload(typ, payload)
	if !errors.Is(err, handlers.ErrUnknownType) {
		return err
	}
	if !known {
		return nil
	}
	hint := "known are " + strings.Join(mux.Types(), ", ")
	if best := nearest(typ, mux.Types()); best != "" {
		hint = "did you mean " + best + "? " + hint
	}
	return refuse("task", typ, "no handler of that type", hint)
}

// builtinMux knows all that the program brings, to check payloads.
func builtinMux() *handlers.Mux {
	mux := handlers.NewMux()
	for typ, h := range handlers.Builtin(handlers.BuiltinConfig{AllowExec: true}) {
		if err := mux.Handle(typ, h); err != nil {
			panic(err) // the names are constants
		}
	}
	return mux
}

// parseTime reads a moment.
func parseTime(field, s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, refuse(field, s, "not a time", "RFC 3339, such as 2030-01-31T09:00:00Z or 2030-01-31T09:00:00+09:00")
	}
	return t, task.CheckDue(field, t)
}
