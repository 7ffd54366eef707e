package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/field"
	"github.com/onbeat/onbeat/handlers"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// scheduleSettings is one entry of schedules.
type scheduleSettings struct {
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
	CatchUp period   `yaml:"catch_up"`
	Overlap text     `yaml:"overlap"`

	Task        text            `yaml:"task"`
	Payload     any             `yaml:"payload"`
	Secret      []string        `yaml:"secret"`
	Queue       text            `yaml:"queue"`
	Priority    text            `yaml:"priority"`
	Timeout     period          `yaml:"timeout"`
	MaxAttempts *integer        `yaml:"max_attempts"`
	Backoff     backoffSettings `yaml:"backoff"`
}

// schedule is the schedule that the settings describe, and what of them could not be read.
func (s *scheduleSettings) schedule() (producer.Schedule, error) {
	p := producer.Schedule{
		Name: string(s.Name),
		Rule: schedule.Rule{
			Every: time.Duration(s.Every), Cron: string(s.Cron), Timezone: string(s.Timezone),
			DST:   schedule.DST{Gap: schedule.GapPolicy(s.DST.Gap), Overlap: schedule.OverlapPolicy(s.DST.Overlap)},
			Start: string(s.Start), MaxRuns: int64(s.MaxRuns), Jitter: time.Duration(s.Jitter),
			Missed: schedule.Missed(s.Missed), CatchUp: time.Duration(s.CatchUp), Overlap: schedule.Overlap(s.Overlap),
		},
		Task: string(s.Task), Secret: s.Secret, Queue: string(s.Queue), Timeout: time.Duration(s.Timeout),
		Backoff: task.Backoff{Base: time.Duration(s.Backoff.Base), Cap: time.Duration(s.Backoff.Cap)},
	}
	var wrong []error
	var err error
	if s.Until != "" {
		if p.Until, err = task.ParseTime("until", string(s.Until)); err != nil {
			wrong = append(wrong, err)
		}
	}
	if p.Priority, err = task.ParsePriority(string(s.Priority)); err != nil {
		wrong = append(wrong, err)
	}
	if s.MaxAttempts != nil {
		p.MaxAttempts = int(*s.MaxAttempts)
		if err := task.CheckAttempts(p.MaxAttempts, producer.ScheduleMaxAttempts); err != nil {
			wrong = append(wrong, err)
		}
	}
	if s.Payload != nil {
		if p.Payload, err = json.Marshal(s.Payload); err != nil {
			wrong = append(wrong, refuse("payload", "", "cannot be written as JSON", "use no infinite numbers, and only text as keys"))
		}
	}
	return p, errors.Join(wrong...)
}

// takeSchedules makes schedules of the settings. One that could not be read whole keeps its place.
func (f *File) takeSchedules(list []scheduleSettings) {
	f.Schedules = make([]producer.Schedule, len(list))
	for i := range list {
		var err error
		f.Schedules[i], err = list[i].schedule()
		for _, p := range f.add(nil, fmt.Sprintf("schedules[%d]", i), err) {
			f.doc.aside[field.Of(p).Field] = true
			f.unread = append(f.unread, p)
		}
	}
}

// takeReferences looks at the environment variables to which payloads of http refer. Each run resolves them, and not this file.
func (f *File) takeReferences(getenv func(string) string) {
	allowed := f.Handlers.HTTP.PassEnv
	for i := range f.Schedules {
		if f.Schedules[i].Task != "http" {
			continue
		}
		for _, name := range handlers.HTTPEnv(f.Schedules[i].Payload) {
			path, ref := fmt.Sprintf("schedules[%d]", i), "${"+name+"}"
			switch {
			case !slices.Contains(allowed, name):
				f.problems = append(f.problems, f.doc.at(path, refuse("payload", ref, "the environment variable is not in http.pass_env",
					"add it there, or write $"+ref+" for the text")))
			case getenv(name) == "":
				f.lacking = append(f.lacking, f.doc.at(path, refuse("payload", ref, "the environment variable is not set", "each instance needs it")))
			}
		}
	}
}

// CheckSchedules refuses schedules that could not run, by [Problems] that list all of them. Of the rest of the file it refuses
// only what cannot be read. A task type that the program does not bring passes: the handler may be in another program.
func (f *File) CheckSchedules(limits task.Limits) error {
	return append(slices.Clone(f.unread), f.checkSchedules(limits, false)...).sorted()
}

// checkSchedules lists what is wrong with the schedules. With known, so is a task type that the program does not bring.
func (f *File) checkSchedules(limits task.Limits, known bool) (list Problems) {
	mux := NewMux()
	first := map[string]int{}
	for i := range f.Schedules {
		s, path := &f.Schedules[i], fmt.Sprintf("schedules[%d]", i)
		list = f.add(list, path, s.Validate(limits))
		if s.Task != "" && len(s.Payload) <= cmp.Or(limits.Payload, task.DefaultPayloadLimit) {
			list = f.add(list, path, CheckPayload(mux, s.Task, s.Payload, known))
		}
		if before, twice := first[s.Name]; twice {
			list = f.add(list, path, refuse("name", s.Name, "declared twice",
				fmt.Sprintf("line %d declares it too; give each schedule its own name", f.doc.line(fmt.Sprintf("schedules[%d].name", before)))))
		} else if s.Name != "" {
			first[s.Name] = i
		}
	}
	return list
}

// CheckPayload asks the handler of a task type that the program brings. Other types pass, unless all must be known.
func CheckPayload(mux *handlers.Mux, typ string, payload []byte, known bool) error {
	err := mux.CheckPayload(typ, payload)
	if !errors.Is(err, handlers.ErrUnknownType) {
		return err
	}
	if !known {
		return nil
	}
	hint := "known: " + strings.Join(mux.Types(), ", ")
	if best := wording.Nearest(typ, mux.Types()); best != "" {
		hint = "did you mean " + best + "? " + hint
	}
	return refuse("task", typ, "no handler for that type", hint)
}

// NewMux returns the handlers that the program brings, to check payloads with.
func NewMux() *handlers.Mux {
	mux := handlers.NewMux()
	for typ, h := range handlers.Builtin(handlers.BuiltinConfig{AllowExec: true}) {
		if err := mux.Handle(typ, h); err != nil {
			panic(err) // the names are constants
		}
	}
	return mux
}
