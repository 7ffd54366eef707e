package producer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/form"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Schedule is a named rule for when, and the task that each of its slots becomes.
type Schedule struct {
	// Name is unique in the namespace.
	Name string
	// Rule says when.
	schedule.Rule
	// Task is the type of the schedule's tasks. Required.
	Task string
	// Payload is the payload of the schedule's tasks.
	Payload json.RawMessage
	// Secret are the paths of the payload that are secret, besides those of its type; see [task.Secret].
	Secret []string
	// Heartbeat says which URLs hear of the schedule's runs. Default nil: none.
	Heartbeat *Heartbeat

	// Queue, Priority, Timeout, MaxAttempts and Backoff apply to the schedule's tasks; see task.Task. The defaults of MaxAttempts and
	// of the first delay depend on the gap to the next slot: a slot is retried until the longest delays add up to half of that gap, an
	// hour at most. It has three attempts at least, and 100 at most.
	Queue       string
	Priority    task.Priority
	Timeout     time.Duration
	MaxAttempts int
	Backoff     task.Backoff

	// Elsewhere says that other programs of the namespace handle the type, so this one needs no handler for it. It is not stored: only
	// the dispatcher that declares the schedule reads it.
	Elsewhere bool

	sealed *task.Sealed // the payload, if it is encrypted and this process cannot open it
}

// Validate refuses a schedule that could not run: an invalid name, rule, task or number. It joins one [*task.FieldError] for
// each field.
func (s *Schedule) Validate(l task.Limits) error {
	return wording.Join(task.CheckName("name", s.Name), s.Rule.Validate(), s.checkTask(l))
}

func (s *Schedule) checkTask(l task.Limits) error {
	list := s.Heartbeat.validate()
	if s.Task == "" {
		list = append(list, &task.FieldError{Field: "task", Reason: "missing", Hint: "name the task type that each slot runs, for example http"})
	}
	if len(s.Payload) > 0 && !json.Valid(s.Payload) {
		list = append(list, &task.FieldError{Field: "payload", Reason: "not valid JSON"})
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{{"timeout", s.Timeout}, {"backoff", s.Backoff.Base}, {"backoff_cap", s.Backoff.Cap}} {
		_, err := schedule.ParseDuration(schedule.FormatDuration(max(d.value, 0))) // the task refuses a negative one
		if why := field.Of(err); why != nil {
			list = append(list, &task.FieldError{Field: d.field, Value: why.Value, Reason: why.Reason, Hint: why.Hint})
		}
	}
	each := task.Task{
		Type: cmp.Or(s.Task, "any"), Queue: s.Queue, Payload: s.Payload, Secret: s.Secret, Priority: s.Priority, Timeout: s.Timeout,
		MaxAttempts: s.MaxAttempts, Backoff: s.Backoff,
	}
	return wording.Join(append(list, each.Validate(l))...)
}

// AsStored returns the schedule as it would be read back from Redis. A change of s, of its payload for example, does not
// change it. Only for a schedule that [Schedule.Validate] accepts.
func (s *Schedule) AsStored() Schedule {
	out := *s
	out.Payload, out.Until = nil, s.Until.Round(0).UTC()
	if len(s.Payload) > 0 {
		out.Payload, _ = json.Marshal(s.Payload) // Validate refuses what is no JSON
	}
	if out.Secret = nil; len(s.Secret) > 0 {
		out.Secret = slices.Clone(s.Secret)
	}
	if s.Heartbeat != nil {
		h := *s.Heartbeat
		out.Heartbeat = &h
	}
	return out
}

// Origins of a schedule.
const (
	// Declared schedules come from the code or config of a release, and leave with it.
	Declared = "declared"
	// Applied schedules were made by hand, and stay until a user deletes them.
	Applied = "applied"
)

// definition is a schedule as it is stored in Redis: a JSON object of its head and the fields of the schedule.
type definition struct {
	definitionHead
	Schedule
}

// definitionHead holds the fields of a definition besides its schedule. V is 1, or 2 if the payload is encrypted. A new field must be one that an older
// release may ignore; otherwise V rises, and older releases leave the schedule alone.
type definitionHead struct {
	V       int
	Origin  string
	Release string

	Sealed *task.Sealed // in place of the payload

	newer map[string]json.RawMessage // fields that a newer release wrote and this one does not know: it keeps them
}

// The versions of a definition. An encrypted one is another, so that a release that does not know of that leaves the schedule
// alone, and does not run its tasks without their payload.
const (
	definitionVersion = 1
	sealedVersion     = 2
)

func (h *definitionHead) fields() []form.Field {
	return []form.Field{{Name: "v", At: &h.V}, {Name: "origin", At: &h.Origin}, {Name: "release", At: &h.Release}, {Name: "sealed", At: &h.Sealed}}
}

// MarshalJSON writes the head first, then the schedule: see [readHead].
func (d definition) MarshalJSON() ([]byte, error) {
	head, err := form.Marshal(d.definitionHead.fields())
	if err != nil {
		return nil, err
	}
	s, err := d.Schedule.MarshalJSON()
	if err != nil || len(d.newer) == 0 {
		return form.Join(head, s), err
	}
	newer, err := json.Marshal(d.newer)
	return form.Join(head, newer, s), err
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (d *definition) UnmarshalJSON(b []byte) error {
	*d = definition{}
	return form.Unmarshal(b, append(d.Schedule.fields(), d.definitionHead.fields()...), &d.newer)
}

func (d *definition) encode() (string, error) {
	b, err := d.MarshalJSON() // json.Marshal would go over it once more
	if err != nil {
		return "", fmt.Errorf("schedule %q: %w", d.Name, err)
	}
	return string(b), nil
}

// ErrNewer reports a schedule whose definition this release cannot read.
var ErrNewer = errors.New("a newer release wrote it")

func decodeDefinition(name, text string) (*definition, error) {
	d := &definition{}
	if err := d.UnmarshalJSON([]byte(text)); err != nil {
		return nil, fmt.Errorf("schedule %q: unreadable definition: %w", name, err)
	}
	if d.V > sealedVersion || d.V == sealedVersion && d.Sealed == nil {
		return nil, fmt.Errorf("schedule %q: %w (format %d, this release reads %d)", name, ErrNewer, d.V, sealedVersion)
	}
	d.Name, d.sealed = name, d.Sealed
	if d.sealed != nil {
		d.sealed.Kind = seal.OfSchedule
	}
	return d, nil
}

// same reports whether two schedules say the same, whichever release declared them.
func same(a, b *Schedule) bool {
	x, err1 := a.MarshalJSON()
	y, err2 := b.MarshalJSON()
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// slotTask returns the task of one slot. The next slot spaces its attempts; zero: there is none.
func (s *Schedule) slotTask(slot, next time.Time) *task.Task {
	t := &task.Task{
		ID: task.SlotID(s.Name, slot), Type: s.Task, Payload: s.Payload, Secret: s.Secret, Sealed: s.sealed, Queue: s.Queue, Priority: s.Priority,
		Timeout: s.Timeout, MaxAttempts: s.MaxAttempts, Backoff: s.Backoff, Schedule: s.Name, Slot: slot,
	}
	gap := 2 * retriesLast
	if !next.IsZero() {
		gap = next.Sub(slot)
	}
	spaceAttempts(t, gap)
	switch s.Overlap {
	case schedule.OverlapSkip:
		t.Overlap = task.Skip
	case schedule.OverlapQueue:
		t.Overlap = task.QueueUp
	case schedule.OverlapReplace:
		t.Overlap = task.Replace
	default:
		return t
	}
	t.Key, t.KeyLimit = scheduleKey+s.Name, 1
	return t
}

// exclusive reports whether the schedule's runs may not overlap.
func (s *Schedule) exclusive() bool {
	return s.Overlap == schedule.OverlapSkip || s.Overlap == schedule.OverlapQueue || s.Overlap == schedule.OverlapReplace
}

// lane returns where its tasks wait.
func (s *Schedule) lane() queue.Lane {
	return queue.LaneOf(&task.Task{Type: s.Task, Queue: s.Queue, Priority: s.Priority})
}

// anchor says how to find slot zero of a new schedule, and whether to pass over the slots before now.
func (s *Schedule) anchor() (a queue.Anchor, fromNow bool) {
	switch {
	case s.Start == "" || s.Cron != "" && s.Start == schedule.StartAligned:
		return queue.Anchor{In: true}, false
	case s.Start == schedule.StartAligned:
		return queue.Anchor{Align: s.Every}, false
	}
	return queue.Anchor{At: s.FirstAnchor(time.UnixMilli(0))}, true
}
