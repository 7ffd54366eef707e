package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Schedules lists, changes, pauses and triggers schedules, from any process, whichever instance leads. A change holds for
// every slot after the call returned.
type Schedules struct {
	q    *queue.Queue
	p    *Producer
	past *past.Past
	by   string
}

// By names the person or program that asks for manual changes, such as "ann@host". Events and revisions show the name. It
// goes before a name in the context of a call.
func (s *Schedules) By(actor string) *Schedules {
	named := *s
	named.by = actor
	return &named
}

// NewSchedules returns the schedules to which a producer adds tasks. If kept is not nil, the schedules read older history
// than Redis has in an archive.
func NewSchedules(p *Producer, kept *archive.Source) *Schedules {
	return &Schedules{q: p.q, p: p, past: past.Of(p.q, kept)}
}

// Status is a schedule and how far it has come.
type Status struct {
	Schedule Schedule
	Origin   string // Declared or Applied
	Release  string // the release that declares it; of one that is gone, the release that wrote its definition
	Paused   bool
	Pause    *Pause // set for one that is paused, if it is known by whom; else nil
	Anchor   time.Time
	Last     time.Time // the newest slot that has come; zero before the first
	Came     time.Time // the newest slot that has come, pushed or not; zero if there is none, or while paused
	Next     time.Time // the next slot; zero if there is none, or while paused
	Runs     int64     // slots that have come and were not disposed of
	Pushed   time.Time // slots up to here have been dealt with, except those that it is behind with

	Behind int64  // missed slots that are still to run
	Spans  []Span // where they lie

	// Revision is the revision of a schedule that is there. It rises with every change, also with a pause, and never
	// repeats; zero for a schedule that is gone, or damaged.
	Revision int64

	Retired *Retirement // set for a schedule that is kept until its release is in force again; else nil
	Deleted *Deletion   // set for a schedule that was deleted and can be restored; else nil
}

// Span is the slots after From, up to and including To.
type Span struct{ From, To time.Time }

// Retirement says which release no longer declared a schedule, and since when the schedule has not run.
type Retirement struct {
	At      time.Time `json:"at"`
	Release string    `json:"release"`
}

// Deletion says when a schedule was deleted, and who did it, if that is known.
type Deletion struct {
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
}

// Pause says since when a schedule is paused, who paused it, if that is known, and why, if a reason was given.
type Pause struct {
	At     time.Time `json:"at"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Changed returns when the schedule was last changed, or paused, as of now; zero if that is not known.
func (s *Status) Changed(now time.Time) time.Time { return changedAt(s.Revision, now) }

// changedAt returns when a revision was made: it is at least the clock at that time.
func changedAt(revision int64, now time.Time) time.Time {
	if at := time.UnixMilli(revision).UTC(); revision > 0 && !at.After(now) {
		return at
	}
	return time.Time{}
}

// Grid returns the schedule's grid with its present anchor.
func (s *Status) Grid() (schedule.Grid, error) { return s.Schedule.Grid(s.Anchor) }

func statusOf(st queue.Stored, now time.Time) (Status, error) {
	d, err := readDefinition(st)
	if err != nil {
		return Status{}, err
	}
	if st.Last == "" {
		return Status{Schedule: d.Schedule, Origin: d.Origin, Release: d.Release}, nil
	}
	e, err := entryFrom(st, &d.definitionHead, &d.Schedule)
	if err != nil {
		return Status{}, err
	}
	return e.status(now), nil
}

// status returns how a schedule is, as of now.
func (e *entry) status(now time.Time) Status {
	s := Status{Schedule: *e.s, Origin: e.head.Origin, Release: e.head.Release}
	s.Paused, s.Anchor, s.Runs, s.Pushed = e.last.Paused, e.last.Anchor, e.last.Runs, e.last.Slot
	if p, ok := queue.ParsePause(e.pause); ok && s.Paused {
		s.Pause = &Pause{p.At, p.By, p.Reason}
	}
	s.Revision = e.last.Rev
	s.Behind = e.count(e.behind)
	for _, span := range e.behind {
		s.Spans = append(s.Spans, Span(span))
	}
	if s.Runs > 0 {
		s.Last = e.upTo(minTime(now, e.last.Slot))
	}
	if s.Pushed.After(now) { // slots that were pushed ahead have not come
		s.Runs = max(s.Runs-e.grid.Count(now, s.Pushed), 0)
	}
	if !s.Paused {
		if s.Came = s.Last; !e.exhausted() {
			s.Came = e.upTo(now)
		}
		s.Next = e.after(maxTime(e.last.Slot, now))
		if e.last.Slot.After(now) {
			s.Next = e.grid.Next(now) // it is pushed, and has not come
		} else if e.exhausted() {
			s.Next = time.Time{}
		}
	}
	return s
}

// List returns all schedules by name. Besides them it returns a joined error for those that it cannot read because a newer
// release wrote them.
func (s *Schedules) List(ctx context.Context) ([]Status, error) {
	now, err := s.q.Now(ctx)
	if err != nil {
		return nil, err
	}
	var order []*Status // a Status is large: it is copied once, when its place is known
	var unread []error
	if _, err := s.q.Schedules(ctx, func(part []queue.Stored) error {
		some := make([]Status, 0, len(part))
		for _, st := range part {
			status, err := statusOf(st, now)
			if err != nil {
				unread = append(unread, err)
				continue
			}
			some = append(some, status)
			order = append(order, &some[len(some)-1])
		}
		return nil
	}); err != nil {
		return nil, err
	}
	slices.SortStableFunc(order, func(a, b *Status) int { return strings.Compare(a.Schedule.Name, b.Schedule.Name) })
	order = slices.CompactFunc(order, func(a, b *Status) bool { return a.Schedule.Name == b.Schedule.Name })
	if len(order) == 0 {
		return nil, errors.Join(unread...)
	}
	list := make([]Status, len(order))
	for i, status := range order {
		list[i] = *status
	}
	if err := s.addDeclarer(ctx, list); err != nil {
		return nil, err
	}
	return list, errors.Join(unread...)
}

// addDeclarer names the release that declares the schedules now. A definition names the release that wrote it, and a later one that
// declares the same leaves it as it is: a rollout would else write each of them anew.
func (s *Schedules) addDeclarer(ctx context.Context, list []Status) error {
	if !slices.ContainsFunc(list, func(x Status) bool { return x.Origin == Declared }) {
		return nil
	}
	release, ok, err := s.q.Declarer(ctx)
	for i := range list {
		if ok && list[i].Origin == Declared {
			list[i].Release = release
		}
	}
	return err
}

// Get returns one schedule. The error matches [task.ErrNotFound] if there is none.
func (s *Schedules) Get(ctx context.Context, name string) (Status, error) {
	st, now, err := s.read(ctx, name)
	if err != nil {
		return Status{}, err
	}
	status, err := statusOf(st, now)
	if err != nil {
		return Status{}, err
	}
	one := []Status{status}
	err = s.addDeclarer(ctx, one)
	return one[0], err
}

// Retired returns a schedule that a release retired, as it was then. The error matches [task.ErrNotFound] if there is
// none, or if it was retired so long ago that it is no longer kept.
func (s *Schedules) Retired(ctx context.Context, name string) (Status, error) {
	found, err := s.q.Retired(ctx, []string{name})
	if err != nil {
		return Status{}, err
	}
	r, ok := found[name]
	if !ok {
		return Status{}, fmt.Errorf("retired schedule %q: %w", name, task.ErrNotFound)
	}
	return s.statusOfGone(&r)
}

// statusOfGone returns a schedule that was retired or deleted, as it was then.
func (s *Schedules) statusOfGone(r *queue.Retired) (Status, error) {
	out, err := statusOf(queue.Stored{Name: r.Name, Definition: r.Definition, Last: r.Last, Seal: s.q.Seal()}, r.At)
	if err != nil {
		return Status{}, err
	}
	out.Next, out.Revision = time.Time{}, 0
	if r.Deleted {
		out.Deleted = &Deletion{At: r.At, By: r.By}
	} else {
		out.Retired = &Retirement{At: r.At, Release: r.By}
	}
	return out, nil
}

func (s *Schedules) read(ctx context.Context, name string) (queue.Stored, time.Time, error) {
	now, err := s.q.Now(ctx)
	if err != nil {
		return queue.Stored{}, now, err
	}
	st, err := s.q.Schedule(ctx, name)
	if err == nil && st.Definition == "" {
		err = fmt.Errorf("schedule %q: %w", name, task.ErrNotFound)
	}
	return st, now, err
}

// check refuses a schedule that could not run, or not here.
func (s *Schedules) check(ctx context.Context, want *Schedule) error {
	if err := s.p.CheckSchedule(want); err != nil {
		return err
	}
	return s.checkPlace(ctx, want)
}

func (s *Schedules) checkPlace(ctx context.Context, want *Schedule) error {
	if s.p.cfg.CheckPlace == nil {
		return nil
	}
	return s.p.cfg.CheckPlace(ctx, want)
}

// CheckSchedule refuses a schedule that could not run.
func (p *Producer) CheckSchedule(want *Schedule) error {
	if err := errors.Join(want.Validate(p.cfg.Limits), checkType(want.Task)); err != nil {
		return err
	}
	if p.cfg.Check != nil {
		return p.cfg.Check(&task.Task{Type: want.Task, Payload: want.Payload, Secret: p.Secret(want.Task, want.Secret)})
	}
	return nil
}
