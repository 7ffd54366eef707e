package admin

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/producer"
)

// Revision is a change of a schedule, and what it said from then on.
type Revision struct {
	// Revision is its number; see [Schedule].
	Revision int64 `json:"revision"`
	// At is when it was made.
	At time.Time `json:"at,omitzero"`
	// What is "made", "changed", "deleted", "retired", "restored" or "reverted".
	What string `json:"what"`
	// By is who asked for it; "" if a leader declared the schedule, or if nobody is known.
	By string `json:"by,omitempty"`
	// Release is the release that declared, or retired, the schedule.
	Release string `json:"release,omitempty"`
	// Definition is what the schedule said. It is nil if the schedule was deleted or retired, or if a newer release wrote it.
	Definition *producer.Schedule `json:"definition,omitempty"`
	// Changes are the fields that changed since the revision before, if both are known.
	Changes []producer.FieldChange `json:"changes,omitempty"`
	// Encrypted says why the payload cannot be shown: it is encrypted, and does not open here.
	Encrypted string `json:"encrypted,omitempty"`
	// Secret are the paths of the payload that are secret, here or in the revision before.
	Secret []string `json:"secret,omitempty"`
}

func revisionOf(r *producer.Revision) Revision {
	out := Revision{Revision: r.Number, At: r.At, What: r.What, By: r.By, Release: r.Release, Changes: r.Changes, Secret: r.Secret}
	if r.Schedule != nil {
		out.Definition, out.Encrypted = r.Schedule, r.Schedule.Unopened()
	}
	return out
}

func (s *schedules) Revisions(ctx context.Context, name string, limit int, after string) (List[Revision], error) {
	list, next, err := s.s.Revisions(ctx, name, limit, after)
	page := List[Revision]{Items: make([]Revision, len(list)), Next: next}
	for i := range list {
		page.Items[i] = revisionOf(&list[i])
	}
	return page, err
}

func (s *schedules) Revert(ctx context.Context, name string, revision int64) (Plan, error) {
	return s.applied(ctx, name, func() (producer.ApplyResult, error) { return s.s.Revert(ctx, name, revision) })
}

func (s *schedules) Deleted(ctx context.Context) (List[Schedule], error) {
	return s.gone(s.s.Deleted(ctx))
}
func (s *schedules) Retired(ctx context.Context) (List[Schedule], error) {
	return s.gone(s.s.AllRetired(ctx))
}

func (s *schedules) gone(list []producer.Status, err error) (List[Schedule], error) {
	page := List[Schedule]{Items: make([]Schedule, len(list))}
	for i := range list {
		page.Items[i] = s.scheduleOf(&list[i])
		page.Items[i].Condition = new(scene).judge(&list[i])
	}
	return page, err
}

func (s *schedules) Restore(ctx context.Context, name string) (Schedule, error) {
	if err := s.s.Restore(ctx, name); err != nil {
		return Schedule{}, err
	}
	status, err := s.s.Get(ctx, name)
	return s.scheduleOf(&status), err
}
