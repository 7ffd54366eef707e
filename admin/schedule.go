package admin

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/onbeat/onbeat/internal/form"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Schedule is a schedule, how far it has come, and how its last runs went. In JSON it is one object.
type Schedule struct {
	ScheduleState
	producer.Schedule `json:"-"`
}

// ScheduleState says how far a schedule has come, and how its last runs went.
type ScheduleState struct {
	Condition
	// Origin is producer.Declared or producer.Applied. Release is the release that declared it.
	Origin  string `json:"origin"`
	Release string `json:"release,omitempty"`
	Paused  bool   `json:"paused"`
	// Pause is set for a schedule that is paused, if it is known by whom or since when.
	Pause *producer.Pause `json:"pause,omitempty"`
	// Anchor is slot zero. Last is the newest slot that has come, zero before the first. Next is the next slot, zero if there
	// is none, or while paused.
	Anchor time.Time `json:"anchor,omitzero"`
	Last   time.Time `json:"last,omitzero"`
	Next   time.Time `json:"next,omitzero"`
	// Runs counts the slots that have come and were not disposed of. Behind counts missed slots that are still to run.
	Runs   int64 `json:"runs"`
	Behind int64 `json:"behind,omitempty"`
	// Revision rises with every change, also with a pause, and never repeats. It is zero for a schedule that is gone.
	Revision int64 `json:"revision"`
	// Retired is set for a schedule that is kept until its release is in force again. Deleted is set for one that can be
	// restored.
	Retired *producer.Retirement `json:"retired,omitempty"`
	Deleted *producer.Deletion   `json:"deleted,omitempty"`
	// Encrypted says why the payload cannot be shown: it is encrypted, and does not open here.
	Encrypted string `json:"encrypted,omitempty"`

	// Latest says how the last runs went; nil if no run of it is in the newest part of the history.
	Latest *Latest `json:"latest,omitempty"`

	// SecretOfType are the paths of the payload that are secret because of its type, besides those of the definition.
	SecretOfType []string `json:"secret_of_type,omitempty"`
}

// ScheduleDetail is a schedule with what is next and what was last. In JSON it is one object.
type ScheduleDetail struct {
	Schedule
	Around
}

// Around is what is next of a schedule and what was last.
type Around struct {
	Upcoming   []Slot `json:"upcoming"`    // the next slots, at most 5; none while paused
	RecentRuns []Run  `json:"recent_runs"` // the newest first, about 5
	// Dead counts its dead tasks. DeadAtLeast says that only the 10,000 tasks that died last were looked at.
	Dead        int64 `json:"dead"`
	DeadAtLeast bool  `json:"dead_at_least,omitempty"`
}

// Latest says how the last runs of a schedule went.
type Latest struct {
	Run      Run       `json:"run"`                   // the newest that began
	Failures int       `json:"failures"`              // how many in a row failed, up to Run
	Success  time.Time `json:"last_success,omitzero"` // when the last successful run began; zero if none is known
}

// Run is one run of a schedule's task, or the end of a slot that did not run.
type Run struct {
	Schedule string    `json:"schedule"`
	Task     string    `json:"task"`          // its ID
	Slot     time.Time `json:"slot,omitzero"` // zero if the run was triggered
	// To is the last slot of a range without runs, which begins with Slot, and Slots is how many the range has.
	To      time.Time `json:"to,omitzero"`
	Slots   int64     `json:"slots,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	// Began is when an instance claimed it, zero if the slot ended without a run. Took is how long the handler ran. Lag is the
	// time from the slot until it began; it is left out for a run that was triggered or backfilled.
	Began    time.Time    `json:"began,omitzero"`
	Ended    time.Time    `json:"ended,omitzero"`
	Took     string       `json:"took,omitempty"`
	Lag      string       `json:"lag,omitempty"`
	Outcome  task.Outcome `json:"outcome"`
	Why      string       `json:"why,omitempty"`    // why a slot did not run
	Error    string       `json:"error,omitempty"`  // of a failed run, cut to 200 bytes
	Output   string       `json:"output,omitempty"` // the output of its handler; only with an archive
	Instance string       `json:"instance,omitempty"`
	Release  string       `json:"release,omitempty"` // of that instance
}

// MarshalJSON writes the schedule and its state as one object.
func (s Schedule) MarshalJSON() ([]byte, error) { return joined(s.Schedule, s.ScheduleState) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Schedule) UnmarshalJSON(b []byte) error { return parted(b, &s.Schedule, &s.ScheduleState) }

// MarshalJSON writes the schedule and what is around it as one object.
func (d ScheduleDetail) MarshalJSON() ([]byte, error) { return joined(d.Schedule, d.Around) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *ScheduleDetail) UnmarshalJSON(b []byte) error { return parted(b, &d.Schedule, &d.Around) }

func joined(schedule json.Marshaler, more any) ([]byte, error) {
	x, err := schedule.MarshalJSON() // json.Marshal would go over it once more
	if err != nil {
		return nil, err
	}
	y, err := json.Marshal(more)
	return form.Join(x, y), err
}

func parted(object []byte, schedule json.Unmarshaler, more any) error {
	return cmp.Or(json.Unmarshal(object, more), schedule.UnmarshalJSON(object))
}

// Grid returns the schedule's grid with its present anchor.
func (s *Schedule) Grid() (schedule.Grid, error) { return s.Rule.Grid(s.Anchor) }

func (s *schedules) scheduleOf(st *producer.Status) Schedule {
	return showSchedule(st, s.p.Secret(st.Schedule.Task, nil))
}

func showSchedule(s *producer.Status, secret []string) Schedule {
	return Schedule{Schedule: s.Schedule, ScheduleState: ScheduleState{
		Origin: s.Origin, Release: s.Release, Paused: s.Paused, Pause: s.Pause, Anchor: s.Anchor, Last: s.Last, Next: s.Next, Runs: s.Runs,
		Behind: s.Behind, Revision: s.Revision, Retired: s.Retired, Deleted: s.Deleted, Encrypted: s.Schedule.Unopened(),
		SecretOfType: secret,
	}}
}

func runOf(r *producer.Run) Run {
	out := Run{
		Schedule: r.Schedule, Task: r.Task, Slot: r.Slot, To: r.To, Slots: r.Slots, Attempt: r.Attempt, Began: r.Began, Ended: r.Ended(), Outcome: r.Outcome,
		Why: r.Why, Error: r.Error, Output: r.Output, Instance: r.Instance, Release: r.Release,
	}
	if r.Took != 0 {
		out.Took = r.Took.String()
	}
	if r.OnGrid() {
		out.Lag = r.Lag.String()
	}
	return out
}

func latestOf(l *producer.Latest) *Latest {
	if l == nil {
		return nil
	}
	return &Latest{Run: runOf(&l.Run), Failures: l.Failures, Success: l.Success}
}
