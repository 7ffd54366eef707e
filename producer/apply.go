package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// ApplyResult is the result of Apply.
type ApplyResult string

// The results of Apply.
const (
	Made      ApplyResult = "made"
	Changed   ApplyResult = "changed"
	Unchanged ApplyResult = "unchanged"
)

// Apply makes a schedule, or changes the schedule of that name. The anchor stays unless Start changes. A schedule that a
// release declared changes too, until that release's next leader declares it again. A schedule that is made under the name of a
// deleted one begins anew, and the deleted schedule can no longer be restored.
func (s *Schedules) Apply(ctx context.Context, want Schedule) (ApplyResult, error) {
	return s.apply(ctx, want, nil)
}

// ErrRevision reports that a schedule has another revision than the caller said.
var ErrRevision = errors.New("another revision")

// ApplyIf is Apply if the schedule has the revision that the caller has seen; see [Status]. With revision 0 it only makes
// one that is not there. Otherwise it changes nothing, and the error matches [ErrRevision].
func (s *Schedules) ApplyIf(ctx context.Context, want Schedule, revision int64) (ApplyResult, error) {
	return s.apply(ctx, want, func(st queue.Stored) error { return checkRevision(st, revision) })
}

func (s *Schedules) apply(ctx context.Context, want Schedule, check func(queue.Stored) error) (ApplyResult, error) {
	if err := s.check(ctx, &want); err != nil {
		return "", err
	}
	var did ApplyResult
	err := s.change(ctx, want.Name, true, func(st queue.Stored, now time.Time) (*queue.Change, error) {
		if check != nil {
			if err := check(st); err != nil {
				return nil, err
			}
		}
		var c *queue.Change
		var err error
		did, c, err = apply(st, &want, nil, now)
		return c, err
	}, func() {})
	return did, err
}

// checkRevision refuses a change of a schedule that has another revision. The script refuses it too if the schedule changes
// before it comes: it compares the last run, which has the revision in it.
func checkRevision(st queue.Stored, revision int64) error {
	if st.Absent() {
		if revision != 0 {
			return fmt.Errorf("schedule %q: %w: there is none, and revision %d was expected", st.Name, ErrRevision, revision)
		}
		return nil
	}
	last, err := queue.ParseLast(st.Last)
	switch {
	case err != nil || st.Half():
		return fmt.Errorf("schedule %q: %w: it is damaged; apply it without a revision", st.Name, ErrRevision)
	case revision == 0:
		return fmt.Errorf("schedule %q: %w: there is one, of revision %d, and none was expected", st.Name, ErrRevision, last.Rev)
	case last.Rev != revision:
		return fmt.Errorf("schedule %q: %w: it is at revision %d, and %d was expected", st.Name, ErrRevision, last.Rev, revision)
	}
	return nil
}

// apply works out the change that applies a schedule, with fields of a newer release if it has some, and its result. The change
// is nil if the result is Unchanged.
func apply(st queue.Stored, want *Schedule, newer map[string]json.RawMessage, now time.Time) (ApplyResult, *queue.Change, error) {
	head := definitionHead{V: definitionVersion, Origin: Applied, newer: newer}
	var was *Schedule
	if d, err := readDefinition(st); err == nil {
		head.Origin, head.Release, was = d.Origin, d.Release, &d.Schedule
	}
	c, err := replace(st, want, head, now)
	switch {
	case err != nil:
		return "", nil, err
	case c == nil:
		return Unchanged, nil, nil
	}
	c.Changes = changesMade(was, want)
	if st.Definition == "" {
		return Made, c, nil
	}
	return Changed, c, nil
}

// Pause stops a schedule: no slot after the call returned runs. The reason may be "", and is kept with the pause; of a schedule that
// is paused, only the reason changes, unless it is "". Pause reports whether anything changed.
func (s *Schedules) Pause(ctx context.Context, name, reason string) (bool, error) {
	if err := queue.CheckReason(reason); err != nil {
		return false, err
	}
	return s.pause(ctx, name, true, reason)
}

// Resume lets a paused schedule go on, on its old grid; the slots of the pause are recorded as paused. It reports whether
// it was paused.
func (s *Schedules) Resume(ctx context.Context, name string) (bool, error) {
	return s.pause(ctx, name, false, "")
}

func (s *Schedules) pause(ctx context.Context, name string, paused bool, reason string) (bool, error) {
	did := true
	err := s.change(ctx, name, false, func(st queue.Stored, now time.Time) (*queue.Change, error) {
		noted, _ := queue.ParsePause(st.Pause)
		return pause(st, paused, reason, noted.Reason, now)
	}, func() { did = false })
	return did && err == nil, err
}

// Delete deletes a schedule: no slot after the call returned runs. Tasks of slots that have come stay. The schedule can be
// restored for 30 days; see [Schedules.Restore].
func (s *Schedules) Delete(ctx context.Context, name string) error {
	return s.change(ctx, name, false, func(st queue.Stored, now time.Time) (*queue.Change, error) {
		c, err := remove(st, history.Deleted, now)
		if d, err := readDefinition(st); err == nil {
			c.Changes = changesMade(&d.Schedule, nil)
		}
		return c, err
	}, func() {})
}

// change reads a schedule, works out the change and makes it, and tries again while another caller was faster. It calls
// unchanged if there is nothing to change.
func (s *Schedules) change(ctx context.Context, name string, mayBeNew bool,
	work func(queue.Stored, time.Time) (*queue.Change, error), unchanged func(),
) error {
	ctx = s.named(ctx)
	for range changeTries {
		st, now, err := s.read(ctx, name)
		if err != nil && !(mayBeNew && errors.Is(err, task.ErrNotFound)) {
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
	return fmt.Errorf("schedule %q: %w", name, task.ErrChanged)
}

// named returns a context in which changes are made in the name that [Schedules.By] set, if it did.
func (s *Schedules) named(ctx context.Context) context.Context {
	if s.by == "" {
		return ctx
	}
	return queue.By(ctx, s.by)
}
