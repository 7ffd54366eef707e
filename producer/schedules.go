package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Schedules lists, changes, pauses and triggers schedules, from any process, whichever instance leads. A change holds for
// every slot after the call returned.
type Schedules struct {
	q  *queue.Queue
	p  *Producer
	by string
}

// By names the person or program that asks for manual changes, such as "ann@host". Events show the name.
func (s *Schedules) By(actor string) *Schedules {
	named := *s
	named.by = actor
	return &named
}

// NewSchedules returns the schedules of a partition.
func NewSchedules(q *queue.Queue, p *Producer) *Schedules { return &Schedules{q: q, p: p} }

// Status is a schedule and how far it has come.
type Status struct {
	Schedule Schedule
	Origin   string // Declared or Applied
	Release  string // the release that declared it
	Paused   bool
	Anchor   time.Time
	Last     time.Time // the newest slot that has come; zero before the first
	Next     time.Time // the next slot; zero if there is none, or while paused
	Runs     int64     // slots that have come and were not disposed of
	Pushed   time.Time // slots up to here have been dealt with, except those that it is behind with

	Behind int64        // missed slots that are still to run
	Spans  []queue.Span // where they lie

	Retired *Retirement // set for a schedule that is kept until its release is in force again; else nil
}

// Retirement says which release no longer declared a schedule, and since when the schedule has not run.
type Retirement struct {
	At      time.Time `json:"at"`
	Release string    `json:"release"`
}

// Grid returns the schedule's grid with its present anchor.
func (s *Status) Grid() (schedule.Grid, error) { return s.Schedule.Grid(s.Anchor) }

func statusOf(st queue.Stored, now time.Time) (Status, error) {
	d, err := readDefinition(st)
	if err != nil {
		return Status{}, err
	}
	e, err := newEntry(st)
	if err != nil {
		return Status{}, err
	}
	s := Status{Schedule: d.Schedule, Origin: d.Origin, Release: d.Release}
	if e == nil {
		return s, nil
	}
	s.Paused, s.Anchor, s.Runs, s.Pushed = e.last.Paused, e.last.Anchor, e.last.Runs, e.last.Slot
	s.Behind, s.Spans = e.count(e.behind), e.behind
	if s.Runs > 0 {
		s.Last = e.upTo(minTime(now, e.last.Slot))
	}
	if s.Pushed.After(now) { // what was pushed ahead has not come
		s.Runs = max(s.Runs-e.grid.Count(now, s.Pushed), 0)
	}
	if !s.Paused {
		s.Next = e.after(maxTime(e.last.Slot, now))
		if e.last.Slot.After(now) {
			s.Next = e.grid.Next(now) // it is pushed, and has not come
		} else if e.exhausted() {
			s.Next = time.Time{}
		}
	}
	return s, nil
}

// List returns all schedules by name. Besides them it returns a joined error for those that it cannot read because a newer
// release wrote them.
func (s *Schedules) List(ctx context.Context) ([]Status, error) {
	now, err := s.q.Now(ctx)
	if err != nil {
		return nil, err
	}
	var list []Status
	var unread []error
	if _, err := s.q.Schedules(ctx, func(part []queue.Stored) error {
		for _, st := range part {
			status, err := statusOf(st, now)
			if err != nil {
				unread = append(unread, err)
				continue
			}
			list = append(list, status)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Schedule.Name, b.Schedule.Name) })
	list = slices.CompactFunc(list, func(a, b Status) bool { return a.Schedule.Name == b.Schedule.Name })
	return list, errors.Join(unread...)
}

// Get returns one schedule. The error matches [queue.ErrNotFound] if there is none.
func (s *Schedules) Get(ctx context.Context, name string) (Status, error) {
	st, now, err := s.read(ctx, name)
	if err != nil {
		return Status{}, err
	}
	return statusOf(st, now)
}

// Retired returns a schedule that a release retired, as it was then. The error matches [queue.ErrNotFound] if there is
// none, or if it was retired so long ago that it is no longer kept.
func (s *Schedules) Retired(ctx context.Context, name string) (Status, error) {
	found, err := s.q.Retired(ctx, []string{name})
	if err != nil {
		return Status{}, err
	}
	r, ok := found[name]
	if !ok {
		return Status{}, fmt.Errorf("retired schedule %q: %w", name, queue.ErrNotFound)
	}
	status, err := statusOf(queue.Stored{Name: name, Definition: r.Definition, Last: r.Last, Seal: s.q.Seal()}, r.At)
	if err != nil {
		return Status{}, err
	}
	status.Next, status.Retired = time.Time{}, &Retirement{At: r.At, Release: r.By}
	return status, nil
}

func (s *Schedules) read(ctx context.Context, name string) (queue.Stored, time.Time, error) {
	now, err := s.q.Now(ctx)
	if err != nil {
		return queue.Stored{}, now, err
	}
	st, err := s.q.Schedule(ctx, name)
	if err == nil && st.Definition == "" {
		err = fmt.Errorf("schedule %q: %w", name, queue.ErrNotFound)
	}
	return st, now, err
}

// ApplyResult says what Apply did.
type ApplyResult string

// The results of Apply.
const (
	Made      ApplyResult = "made"
	Changed   ApplyResult = "changed"
	Unchanged ApplyResult = "unchanged"
)

// Apply makes a schedule, or changes the one of that name. The anchor stays unless Start changes. A schedule that a release
// declared is changed too, until that release's next leader declares it again.
func (s *Schedules) Apply(ctx context.Context, want Schedule) (ApplyResult, error) {
	if err := s.p.CheckSchedule(&want); err != nil {
		return "", err
	}
	var did ApplyResult
	err := s.change(ctx, want.Name, true, func(st queue.Stored, now time.Time) (*queue.Change, error) {
		var c *queue.Change
		var err error
		did, c, err = apply(st, &want, now)
		return c, err
	}, func() {})
	return did, err
}

// apply works out the change that applies a schedule, and what it does. The change is nil if the result is Unchanged.
func apply(st queue.Stored, want *Schedule, now time.Time) (ApplyResult, *queue.Change, error) {
	head := definitionHead{V: definitionVersion, Origin: Applied}
	if d, err := decodeDefinition(st.Name, st.Definition); err == nil {
		head.Origin, head.Release = d.Origin, d.Release
	}
	c, err := replace(st, want, head, now)
	switch {
	case err != nil:
		return "", nil, err
	case c == nil:
		return Unchanged, nil, nil
	case st.Definition == "":
		return Made, c, nil
	}
	return Changed, c, nil
}

// CheckSchedule refuses a schedule that could not run.
func (p *Producer) CheckSchedule(want *Schedule) error {
	if err := want.Validate(p.cfg.Limits); err != nil {
		return err
	}
	if p.cfg.Check != nil {
		return p.cfg.Check(&task.Task{Type: want.Task, Payload: want.Payload, Secret: p.Secret(want.Task, want.Secret)})
	}
	return nil
}

// Pause stops a schedule: no slot after the call returned runs. It reports whether the schedule was not paused before.
func (s *Schedules) Pause(ctx context.Context, name string) (bool, error) {
	return s.pause(ctx, name, true)
}

// Resume lets a paused schedule go on, on its old grid; the slots of the pause are recorded as paused. It reports whether
// it was paused.
func (s *Schedules) Resume(ctx context.Context, name string) (bool, error) {
	return s.pause(ctx, name, false)
}

func (s *Schedules) pause(ctx context.Context, name string, paused bool) (bool, error) {
	did := true
	err := s.change(ctx, name, false, func(st queue.Stored, now time.Time) (*queue.Change, error) {
		return pause(st, paused, now)
	}, func() { did = false })
	return did && err == nil, err
}

// Delete deletes a schedule: no slot after the call returned runs. Tasks of slots that have come stay.
func (s *Schedules) Delete(ctx context.Context, name string) error {
	return s.change(ctx, name, false, func(st queue.Stored, now time.Time) (*queue.Change, error) {
		return remove(st, history.Deleted, now)
	}, func() {})
}

// change reads a schedule, works out the change and makes it, and tries again while another caller was faster. It calls
// unchanged if there is nothing to change.
func (s *Schedules) change(ctx context.Context, name string, mayBeNew bool,
	work func(queue.Stored, time.Time) (*queue.Change, error), unchanged func(),
) error {
	for range changeTries {
		st, now, err := s.read(ctx, name)
		if err != nil && !(mayBeNew && errors.Is(err, queue.ErrNotFound)) {
			return err
		}
		c, err := work(st, now)
		if err != nil {
			return err
		}
		if c == nil {
			unchanged()
			return nil
		}
		_, moved, err := s.q.Change(ctx, 0, []queue.Change{*c})
		if err != nil {
			return err
		}
		if len(moved) == 0 {
			return nil
		}
	}
	return fmt.Errorf("schedule %q: %w", name, queue.ErrChanged)
}
