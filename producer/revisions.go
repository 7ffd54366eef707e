package producer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// Revision is a change of a schedule, and the definition from then on.
type Revision struct {
	Number int64
	At     time.Time
	// What is made, changed, deleted, retired, restored or reverted.
	What string
	// By is the actor; "" if a leader declared the schedule, or if the actor is not known.
	By string
	// Origin is Declared or Applied. Release is the release that declared, or retired, the schedule.
	Origin  string
	Release string
	// Schedule is nil if the schedule was deleted or retired, or if a newer release wrote it.
	Schedule *Schedule
	// Changes are the fields that changed since the revision before, if both are known.
	Changes []FieldChange
	// Secret are the paths of the payload that are secret, here or in the revision before.
	Secret []string
}

// Revisions returns a page of the revisions of a schedule, the newest first, and where to go on. Limit is 20 by default. After
// is the place where the page before ended. The error matches [task.ErrNotFound] if nothing is known of the schedule.
func (s *Schedules) Revisions(ctx context.Context, name string, limit int, after string) (page []Revision, next string, err error) {
	before := int64(0)
	if after != "" {
		if before, err = strconv.ParseInt(after, 10, 64); err != nil || before <= 0 {
			return nil, "", &task.FieldError{Field: "after", Value: after, Reason: "not a cursor", Hint: "pass the next of the previous page"}
		}
	}
	if limit <= 0 {
		limit = 20
	}
	noted, err := s.revisions(ctx, name)
	here, older := len(noted), min(limit, mostOlder)+1
	if err == nil && !reaches(noted, before, limit) || errors.Is(err, task.ErrNotFound) {
		noted, err = s.withOlder(ctx, name, noted, before, older, err)
	}
	if err != nil {
		return nil, "", err
	}
	for i := range noted {
		if before != 0 && noted[i].Number >= before {
			continue
		}
		if len(page) == limit {
			return page, strconv.FormatInt(page[limit-1].Number, 10), nil
		}
		page = append(page, s.revisionOf(name, noted, i))
	}
	if len(noted)-here == older { // there may be more: the last one read is on the next page, with what it changed
		page = page[:len(page)-1]
		next = strconv.FormatInt(page[len(page)-1].Number, 10)
	}
	return page, next, nil
}

// mostOlder is how many revisions a page has of those that the past has: each may be of 256 KiB.
const mostOlder = 50

// reaches reports whether a list has a page before a number (0: the first page), and the revision behind the page.
func reaches(noted []queue.Revision, before int64, limit int) bool {
	n := 0
	for i := range noted {
		if before == 0 || noted[i].Number < before {
			n++
		}
	}
	return n > limit
}

// withOlder adds to a list the revisions before it that the past has: the newest of those below a number (0: of all), at most
// limit. If none is known then, it returns the error that says so.
func (s *Schedules) withOlder(ctx context.Context, name string, noted []queue.Revision, below int64, limit int, none error) ([]queue.Revision, error) {
	if n := len(noted); n > 0 && (below == 0 || below > noted[n-1].Number) {
		below = noted[n-1].Number
	}
	first := len(noted) > 0 && noted[len(noted)-1].Before == 0
	older, err := s.past.RevisionsBefore(ctx, name, below, first, limit)
	if err != nil {
		return nil, err
	}
	if noted = append(noted, older...); len(noted) > 0 {
		none = nil
	}
	return noted, none
}

// revisions reads what is noted of a schedule, the newest first.
func (s *Schedules) revisions(ctx context.Context, name string) ([]queue.Revision, error) {
	st, err := s.q.Schedule(ctx, name)
	if err != nil {
		return nil, err
	}
	noted, err := s.q.Revisions(ctx, name)
	if err != nil {
		return nil, err
	}
	last, _ := queue.ParseLast(st.Last)
	if len(noted) > 0 && noted[0].Number == last.Rev { // it may be too long to be noted
		noted[0].Definition = st.Definition
	}
	if len(noted) == 0 {
		return nil, fmt.Errorf("schedule %q: %w", name, task.ErrNotFound)
	}
	return noted, nil
}

func (s *Schedules) revisionOf(name string, noted []queue.Revision, i int) Revision {
	n := &noted[i]
	r := Revision{Number: n.Number, At: n.At, What: n.What, By: n.Who}
	if n.What == string(history.Retired) {
		r.By, r.Release = "", n.Who
	}
	d, err := openDefinition(name, n.Definition, s.q.Seal())
	if err != nil {
		return r
	}
	r.Origin, r.Release, r.Schedule, r.Secret = d.Origin, d.Release, &d.Schedule, s.p.Secret(d.Task, d.Secret)
	if i+1 == len(noted) {
		return r
	}
	if was, err := openDefinition(name, noted[i+1].Definition, s.q.Seal()); err == nil {
		r.Secret = secret.Join(r.Secret, s.p.Secret(was.Task, was.Secret))
		if was.sealed == nil && d.sealed == nil {
			r.Changes, _ = changesOf(&was.Schedule, &d.Schedule) // both were read from JSON
		}
	}
	return r
}

// Revert gives a schedule the definition of a revision again, as a new revision. The anchor stays unless Start changes. [Schedules.Restore]
// restores a deleted schedule. Revert makes a schedule anew that only the archive still knows.
func (s *Schedules) Revert(ctx context.Context, name string, revision int64) (ApplyResult, error) {
	noted, none := s.revisions(ctx, name)
	if none != nil && !errors.Is(none, task.ErrNotFound) {
		return "", none
	}
	is := func(r queue.Revision) bool { return r.Number == revision }
	i := slices.IndexFunc(noted, is)
	if i < 0 {
		var err error
		if noted, err = s.withOlder(ctx, name, noted, revision+1, 1, none); err != nil {
			return "", err
		}
		i = slices.IndexFunc(noted, is)
	}
	refused := &task.FieldError{Field: "revision", Value: strconv.FormatInt(revision, 10)}
	if i < 0 {
		refused.Reason = "not known"
		return "", refused
	}
	if noted[i].Definition == "" {
		refused.Reason, refused.Hint = "the schedule said nothing then: it was "+noted[i].What, "name another one"
		return "", refused
	}
	d, err := openDefinition(name, noted[i].Definition, s.q.Seal())
	if err == nil {
		err = d.checkOpens(s.q.Seal())
	}
	if err == nil && d.sealed != nil {
		err = fmt.Errorf("schedule %q: revision %d: %w", name, revision, task.ErrDamaged)
	}
	if err != nil {
		return "", err
	}
	if err := s.check(ctx, &d.Schedule); err != nil {
		return "", err
	}
	did := Unchanged
	mayBeNew := none != nil // only the archive knows of it: Redis came back empty, or the schedule is long gone
	err = s.change(ctx, name, mayBeNew, func(st queue.Stored, now time.Time) (c *queue.Change, err error) {
		if did, c, err = apply(st, &d.Schedule, d.newer, now); c != nil {
			c.Event = "schedule reverted"
		}
		return c, err
	}, func() {})
	return did, err
}

// Forgotten returns the last revision of a schedule from before Redis came back empty, and when Redis made the schedule anew. The
// revision is nil and the moment zero if Redis has forgotten nothing of it, if it was restored, and so goes on with its rule and its grid,
// or if no archive has the revision.
func (s *Schedules) Forgotten(ctx context.Context, name string) (was *Revision, until time.Time, err error) {
	if !s.past.Archived() {
		return nil, until, nil
	}
	noted, err := s.q.Revisions(ctx, name)
	if err != nil || len(noted) == 0 || noted[len(noted)-1].Before != 0 {
		return nil, until, err
	}
	first := noted[len(noted)-1]
	if first.What == "restored" {
		return nil, until, nil
	}
	older, err := s.past.RevisionsBefore(ctx, name, first.Number, true, 1)
	if err != nil || len(older) == 0 || older[0].Definition == "" {
		return nil, until, err
	}
	r := s.revisionOf(name, older, 0)
	return &r, first.At, nil
}

// Deleted returns, by name, the schedules that were deleted and can be restored, as they were then. Besides them it returns a
// joined error for those that it cannot read because a newer release wrote them.
func (s *Schedules) Deleted(ctx context.Context) ([]Status, error) { return s.gone(ctx, true) }

// AllRetired is Deleted for those that a release retired, and that come back when their release is in force again.
func (s *Schedules) AllRetired(ctx context.Context) ([]Status, error) { return s.gone(ctx, false) }

func (s *Schedules) gone(ctx context.Context, deleted bool) ([]Status, error) {
	gone, err := s.q.AllGone(ctx, deleted)
	if err != nil {
		return nil, err
	}
	var list []Status
	var unread []error
	for i := range gone {
		status, err := s.statusOfGone(&gone[i])
		if err != nil {
			unread = append(unread, err)
			continue
		}
		list = append(list, status)
	}
	slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Schedule.Name, b.Schedule.Name) })
	return list, errors.Join(unread...)
}

// Restore lets a deleted schedule go on as it was: on its old grid, with its runs counted, and paused if it was. The slots
// since then are noted as deleted, and none of them runs. The error matches [task.ErrNotFound] if no such schedule was
// deleted within 30 days, or if one of that name was made since.
func (s *Schedules) Restore(ctx context.Context, name string) error {
	return s.change(ctx, name, true, func(st queue.Stored, now time.Time) (*queue.Change, error) {
		found, err := s.q.Deleted(ctx, []string{name})
		if err != nil {
			return nil, err
		}
		r, ok := found[name]
		if !ok || !st.Absent() {
			return nil, fmt.Errorf("deleted schedule %q: %w", name, task.ErrNotFound)
		}
		d, err := openDefinition(name, r.Definition, s.q.Seal())
		if err != nil {
			return nil, err
		}
		if _, err := queue.ParseLast(r.Last); err != nil {
			return nil, err
		}
		if err := s.checkPlace(ctx, &d.Schedule); err != nil {
			return nil, err
		}
		made, err := replace(st, &d.Schedule, d.definitionHead, now)
		if err != nil {
			return nil, err
		}
		c, err := comeBack(r, made, &d.Schedule, now)
		if err == nil {
			c.Changes = changesMade(nil, &d.Schedule)
		}
		return c, err
	}, func() {})
}
