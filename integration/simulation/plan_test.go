package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/instance"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// plan is one run of the simulation. It decides everything that happens, except the order in which goroutines that are ready
// at the same moment go on.
type plan struct {
	Seed      uint64         `json:"seed"`
	Why       string         `json:"why,omitempty"` // for a kept plan: the fault that it found
	Begin     string         `json:"begin,omitempty"`
	For       span           `json:"for"`     // how long steps happen; then it is quiet
	Latency   span           `json:"latency"` // of a round trip, at least
	Processes []process      `json:"processes"`
	Schedules []timetable    `json:"schedules,omitempty"`
	Steps     []step         `json:"steps,omitempty"`
	Limits    map[string]int `json:"limits,omitempty"` // most running tasks of a type, over all processes
	Encrypted bool           `json:"encrypted,omitempty"`
}

// encryption are the keys of all processes, if payloads are encrypted.
func (p *plan) encryption() task.Encryption {
	if !p.Encrypted {
		return task.Encryption{}
	}
	return task.Encryption{Keys: []task.EncryptionKey{{ID: "k", Secret: make([]byte, task.EncryptionKeyBytes)}}}
}

// process is one process that runs a Dispatcher. It starts once and ends once.
type process struct {
	Name        string           `json:"name"`
	Release     string           `json:"release,omitempty"`
	Start       span             `json:"start"`
	Lead        instance.Lead    `json:"lead,omitempty"`
	Consume     instance.Consume `json:"consume,omitempty"`
	Standby     bool             `json:"standby,omitempty"`
	MinReady    span             `json:"min_ready,omitempty"`
	CheckTakes  span             `json:"check_takes,omitempty"` // how long the readiness check takes
	CheckFails  span             `json:"check_fails,omitempty"` // how long after the start it fails
	Lease       span             `json:"lease"`
	Drain       span             `json:"drain"`
	Concurrency int              `json:"concurrency"`
	Queues      map[string]int   `json:"queues,omitempty"`
	Strict      bool             `json:"strict,omitempty"`
	Types       []string         `json:"types"`
	Declares    []string         `json:"declares,omitempty"` // names of schedules
}

// timetable is a schedule. The processes that name it declare it, or a step applies it.
type timetable struct {
	Name     string               `json:"name"`
	Every    span                 `json:"every,omitempty"`
	Cron     string               `json:"cron,omitempty"`
	Zone     string               `json:"zone,omitempty"`
	Start    string               `json:"start,omitempty"`
	Until    span                 `json:"until,omitempty"` // after the beginning
	MaxRuns  int64                `json:"max_runs,omitempty"`
	Jitter   span                 `json:"jitter,omitempty"`
	Missed   schedule.Missed      `json:"missed,omitempty"`
	CatchUp  span                 `json:"catch_up,omitempty"`
	Overlap  schedule.Overlap     `json:"overlap,omitempty"`
	Type     string               `json:"type"`
	Queue    string               `json:"queue,omitempty"`
	Priority string               `json:"priority,omitempty"`
	Attempts int                  `json:"attempts,omitempty"`
	Does     behaviour            `json:"does"`
	Versions map[string]behaviour `json:"versions,omitempty"` // by release: its behaviour there
}

// behaviour is what a handler does with a task. It is the task's payload.
type behaviour struct {
	Takes   span  `json:"takes,omitempty"`
	Fails   int   `json:"fails,omitempty"`   // how many attempts fail, from the first on
	Nth     int64 `json:"nth,omitempty"`     // only for each nth slot
	Panics  bool  `json:"panics,omitempty"`  // instead of returning an error
	Ignores bool  `json:"ignores,omitempty"` // its context
	Retry   span  `json:"retry,omitempty"`   // after a failure
	Effect  bool  `json:"effect,omitempty"`  // a success has an effect in a database, within handlers.Once
}

// step is an event at a moment: a fault, an operation, or a call.
type step struct {
	At      span       `json:"at"`
	Do      string     `json:"do"`
	Process string     `json:"process,omitempty"`
	Name    string     `json:"name,omitempty"` // of a schedule or a task
	For     span       `json:"for,omitempty"`
	Back    span       `json:"back,omitempty"` // how much is lost, or how far a backfill reaches
	N       int        `json:"n,omitempty"`
	Type    string     `json:"type,omitempty"`
	Queue   string     `json:"queue,omitempty"`
	Prio    string     `json:"priority,omitempty"`
	Key     string     `json:"key,omitempty"`
	Limit   int        `json:"limit,omitempty"`
	Unique  bool       `json:"unique,omitempty"`
	Tries   int        `json:"tries,omitempty"`
	Every   span       `json:"every,omitempty"`
	Does    *behaviour `json:"does,omitempty"`
}

// span is a duration that is written as text.
type span time.Duration

// MarshalText writes it as time.Duration prints it.
func (s span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText is the inverse.
func (s *span) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	*s = span(d)
	return err
}

func (s span) d() time.Duration { return time.Duration(s) }

// slots returns about how many slots the plan's schedules have.
func (p *plan) slots() (n int) {
	for i := range p.Schedules {
		if every := p.Schedules[i].Every.d(); every > 0 {
			n += int(p.For.d() / every)
		}
	}
	return n
}

// hasEffects reports whether a task of the plan has an effect in a database.
func (p *plan) hasEffects() bool {
	for i := range p.Schedules {
		t := &p.Schedules[i]
		if t.Does.Effect {
			return true
		}
		for _, does := range t.Versions {
			if does.Effect {
				return true
			}
		}
	}
	return slices.ContainsFunc(p.Steps, func(s step) bool { return s.Does != nil && s.Does.Effect })
}

func (p *plan) String() string {
	b, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (p *plan) clone() *plan {
	var q plan
	if err := json.Unmarshal([]byte(p.String()), &q); err != nil {
		panic(err)
	}
	return &q
}

func loadPlan(file string) (*plan, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &plan{}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}

func (p *plan) process(name string) *process {
	for i := range p.Processes {
		if p.Processes[i].Name == name {
			return &p.Processes[i]
		}
	}
	return nil
}

func (p *plan) timetable(name string) *timetable {
	for i := range p.Schedules {
		if p.Schedules[i].Name == name {
			return &p.Schedules[i]
		}
	}
	return nil
}

// longestLease returns the longest lease of any process.
func (p *plan) longestLease() time.Duration {
	var most time.Duration
	for i := range p.Processes {
		most = max(most, p.Processes[i].Lease.d())
	}
	return most
}

// schedule returns the timetable as a release declares it or, with "", as a step applies it.
func (t *timetable) schedule(release string, began time.Time) producer.Schedule {
	does := t.Does
	if v, ok := t.Versions[release]; ok {
		does = v
	}
	payload, err := json.Marshal(does)
	if err != nil {
		panic(err)
	}
	s := producer.Schedule{Name: t.Name, Rule: t.rule(began), Task: t.Type, Payload: payload, Queue: t.Queue, MaxAttempts: t.Attempts}
	s.Backoff = task.Backoff{Base: backoffLeast, Cap: backoffMost}
	if t.Priority != "" {
		if s.Priority, err = task.ParsePriority(t.Priority); err != nil {
			panic(err)
		}
	}
	return s
}

func (t *timetable) rule(began time.Time) schedule.Rule {
	r := schedule.Rule{
		Every: t.Every.d(), Cron: t.Cron, Timezone: t.Zone, Start: t.Start, MaxRuns: t.MaxRuns, Jitter: t.Jitter.d(),
		Missed: t.Missed, CatchUp: t.CatchUp.d(), Overlap: t.Overlap,
	}
	if t.Until > 0 {
		r.Until = began.Add(t.Until.d())
	}
	return r
}

// gridFrom returns the grid whose slot zero is at a moment.
func (t *timetable) gridFrom(zero, began time.Time) schedule.Grid {
	g, err := t.rule(began).Grid(zero)
	if err != nil {
		panic(err)
	}
	return g
}

func itoa(n int) string { return strconv.Itoa(n) }
