package admin

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/onbeat/onbeat/admin/audit"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/producer"
	"github.com/onbeat/onbeat/task"
)

// Schedules shows and changes schedules. A change holds for every slot after the call returned. Where a name is unknown, the
// error matches [task.ErrNotFound].
type Schedules interface {
	// Get returns a schedule, also one that was retired and may come back.
	Get(ctx context.Context, name string) (ScheduleDetail, error)
	// List returns all schedules by name. Besides them it returns a joined error for those that it cannot read because a newer
	// release wrote them.
	List(ctx context.Context) (List[Schedule], error)
	// Runs returns a page of what became of a schedule's tasks, or of those of all schedules if name is "": at least limit
	// (default 20) if there are as many, newest first.
	Runs(ctx context.Context, name string, limit int, after string) (List[Run], error)
	// Slots returns the next slots of a schedule from a moment on, itself included; from now if it is zero. A paused schedule
	// has slots too, which are not run.
	Slots(ctx context.Context, name string, from time.Time, count int) (Preview, error)

	// Plan says what Apply would do now. It writes nothing.
	Plan(ctx context.Context, s producer.Schedule) (Plan, error)
	// Apply makes a schedule, or changes the one of that name. A schedule that a release declared is changed too, until that
	// release's next leader declares it again.
	Apply(ctx context.Context, s producer.Schedule) (Plan, error)
	// Pause stops a schedule, and reports whether that changed anything. The reason may be "", and is shown wherever the pause is; of a
	// schedule that is paused, only the reason changes, unless it is "".
	Pause(ctx context.Context, name, reason string) (bool, error)
	// Resume lets a paused schedule go on, on its old grid, and reports whether it was paused.
	Resume(ctx context.Context, name string) (bool, error)
	// Trigger runs a schedule's task once, now, outside its grid, and returns the task's ID. A payload other than nil
	// replaces the schedule's.
	Trigger(ctx context.Context, name string, payload json.RawMessage) (string, error)
	// Backfill runs the task of every slot of a time; see [producer.Schedules.Backfill].
	Backfill(ctx context.Context, name string, b producer.Backfilling) (Backfilled, error)
	// Delete deletes a schedule, and returns what it was. Tasks of slots that have come stay. It can be restored for 30 days.
	// If a release declares the schedule, the next leader of that release makes it anew.
	Delete(ctx context.Context, name string) (Schedule, error)

	// ApplyIf is Apply if the schedule has that revision; see [Schedule]. With revision 0 it only makes one that is not there.
	// Otherwise it changes nothing, and the error matches [ErrRevision].
	ApplyIf(ctx context.Context, s producer.Schedule, revision int64) (Plan, error)
	// Revisions returns a page of what a schedule said, also one that is gone, the newest first: at most limit (default 20).
	// 50 are kept.
	Revisions(ctx context.Context, name string, limit int, after string) (List[Revision], error)
	// Revert makes a schedule say again what it said at a revision. That is a new revision.
	Revert(ctx context.Context, name string, revision int64) (Plan, error)
	// Deleted returns, by name, the schedules that can be restored, as they were. Besides them it returns a joined error for
	// those that it cannot read because a newer release wrote them.
	Deleted(ctx context.Context) (List[Schedule], error)
	// Retired is Deleted for those that a newer release does not declare. They come back when their release is in force again.
	Retired(ctx context.Context) (List[Schedule], error)
	// Restore lets a deleted schedule go on, on its old grid, with its runs counted, and paused if it was. The error matches
	// [task.ErrNotFound] if it was deleted over 30 days ago, or if one of that name was made since.
	Restore(ctx context.Context, name string) (Schedule, error)
}

// ErrRevision reports that a schedule has another revision than the caller said.
var ErrRevision = producer.ErrRevision

// Plan is what [Schedules.Apply] did or would do.
type Plan struct {
	Name string `json:"name"`
	// Result is what was done, "made", "changed" or "unchanged", or what would be: "would make", "would change".
	Result string `json:"result"`
	// Changes are the fields that change, by name. They are empty if the stored schedule cannot be read because a newer
	// release wrote it.
	Changes []producer.FieldChange `json:"changes,omitempty"`
	// Secret are the paths of the payload that are secret, before or after.
	Secret []string `json:"secret,omitempty"`
	// Declared says that a release declares the schedule: its next leader puts its own definition back. DeclaredBy is that
	// release, if it has a name.
	Declared   bool   `json:"declared,omitempty"`
	DeclaredBy string `json:"declared_by,omitempty"`
}

// Backfilled is the result of a backfill.
type Backfilled struct {
	Name  string `json:"name"`
	Slots int    `json:"slots"` // how many slots the time has
	Added int    `json:"added"` // how many were added; an earlier backfill has added those that were neither added nor refused
	// Refused is how many Redis refused, such as for the limit of lanes, and Why says why it refused the first.
	Refused int          `json:"refused,omitempty" doc:"How many Redis refused: they do not run."`
	Why     *RefusedJSON `json:"why,omitempty" doc:"Why the first of these was refused."`
	// DryRun says that they were only counted: Added is how many would be added.
	DryRun bool `json:"dry_run,omitempty"`
	// Outcomes are the slots by what became of them, First and Last the bounds of these, as far as they were judged: for a dry run, or for
	// those that failed alone.
	Outcomes map[audit.Verdict]int64 `json:"outcomes,omitempty" doc:"The slots by what became of them."`
	First    time.Time               `json:"first,omitzero" doc:"The first of these."`
	Last     time.Time               `json:"last,omitzero" doc:"The last of these."`
}

// shown is how many slots and runs a [ScheduleDetail] has.
const shown = 5

// schedules are the schedules of a namespace on Redis.
type schedules struct {
	q *queue.Queue
	s *producer.Schedules
	p *producer.Producer
	n *instances

	auditor *audit.Auditor
}

func (s *schedules) Get(ctx context.Context, name string) (ScheduleDetail, error) {
	var d ScheduleDetail
	status, now, err := s.status(ctx, name)
	if err != nil {
		return d, err
	}
	latest, err := s.s.Latest(ctx, []string{name})
	if err != nil {
		return d, err
	}
	runs, _, err := producer.NewSchedules(s.p, nil).Runs(ctx, name, "", shown) // those that Redis has: an archive that is away hides no schedule
	x, err2 := sceneOf(ctx, s.q, s.s, s.n, []producer.Status{status})
	if err2 != nil {
		return d, err2
	}
	dead, more, err2 := s.q.DeadOf(ctx, name)
	if err2 != nil {
		return d, err2
	}
	d = ScheduleDetail{s.scheduleOf(&status), Around{upcoming(&status, now), ListOf(shownRuns(runs), "").Items, dead, more}}
	d.Latest, d.Condition = latestOf(latest[name]), x.judge(&status)
	return d, err
}

// status reads a schedule, also a retired one.
func (s *schedules) status(ctx context.Context, name string) (producer.Status, time.Time, error) {
	now, err := s.q.Now(ctx)
	if err != nil {
		return producer.Status{}, now, err
	}
	status, err := s.s.Get(ctx, name)
	if errors.Is(err, task.ErrNotFound) {
		was, err2 := s.s.Retired(ctx, name)
		if err2 == nil || !errors.Is(err2, task.ErrNotFound) {
			return was, now, err2
		}
	}
	return status, now, err
}

// upcoming returns the next slots. A paused schedule has none.
func upcoming(s *producer.Status, now time.Time) []Slot {
	grid, err := s.Grid()
	if err != nil || s.Next.IsZero() {
		return []Slot{}
	}
	left := int64(shown)
	if s.Schedule.MaxRuns > 0 {
		left = min(left, s.Schedule.MaxRuns-s.Runs)
	}
	return PreviewOf(s.Schedule.Rule, s.Schedule.Name, grid, s.Next.Add(-time.Millisecond), now, int(max(left, 1))).Slots
}

func (s *schedules) List(ctx context.Context) (List[Schedule], error) {
	list, unread := s.s.List(ctx)
	if list == nil && unread != nil {
		return ListOf[Schedule](nil, ""), unread
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Schedule.Name
	}
	latest, err := s.s.Latest(ctx, names)
	if err != nil {
		return ListOf[Schedule](nil, ""), err
	}
	x, err := sceneOf(ctx, s.q, s.s, s.n, list)
	if err != nil {
		return ListOf[Schedule](nil, ""), err
	}
	page := List[Schedule]{Items: make([]Schedule, len(list)), CouldNotAsk: x.couldNotAsk()}
	for i := range list {
		page.Items[i] = s.scheduleOf(&list[i])
		page.Items[i].Latest, page.Items[i].Condition = latestOf(latest[names[i]]), x.judge(&list[i])
	}
	return page, unread
}

func (s *schedules) Runs(ctx context.Context, name string, limit int, after string) (List[Run], error) {
	if err := checkPlace(after); err != nil {
		return ListOf[Run](nil, ""), err
	}
	runs, next, err := s.s.Runs(ctx, name, after, limit)
	return ListOf(shownRuns(runs), next), err
}

func shownRuns(runs []producer.Run) []Run {
	list := make([]Run, len(runs))
	for i := range runs {
		list[i] = runOf(&runs[i])
	}
	return list
}

func (s *schedules) Slots(ctx context.Context, name string, from time.Time, count int) (Preview, error) {
	now, err := s.q.Now(ctx)
	if err != nil {
		return Preview{}, err
	}
	status, err := s.s.Get(ctx, name)
	if err != nil {
		return Preview{}, err
	}
	grid, err := status.Grid()
	if err != nil {
		return Preview{}, err
	}
	if from.IsZero() {
		from = now
	}
	if r := &status.Schedule; r.MaxRuns > 0 {
		count = int(min(int64(count), max(r.MaxRuns-status.Runs, 0)))
	}
	p := PreviewOf(status.Schedule.Rule, name, grid, from.Add(-time.Millisecond), now, count)
	p.Paused = status.Paused
	return p, nil
}

func (s *schedules) Plan(ctx context.Context, want producer.Schedule) (Plan, error) {
	plan, err := s.s.Plan(ctx, want)
	out := Plan{Name: want.Name, Result: string(plan.Result), Changes: plan.Changes}
	out.Secret = s.p.Secret(want.Task, secret.Join(plan.Secret, want.Secret))
	switch plan.Result {
	case producer.Made:
		out.Result = "would make"
	case producer.Changed:
		out.Result = "would change"
		out.Declared, out.DeclaredBy = plan.Declared, plan.Release
	}
	return out, err
}

func (s *schedules) Apply(ctx context.Context, want producer.Schedule) (Plan, error) {
	return s.applied(ctx, want.Name, func() (producer.ApplyResult, error) { return s.s.Apply(ctx, want) })
}

func (s *schedules) ApplyIf(ctx context.Context, want producer.Schedule, revision int64) (Plan, error) {
	return s.applied(ctx, want.Name, func() (producer.ApplyResult, error) { return s.s.ApplyIf(ctx, want, revision) })
}

// applied calls do, which changes a schedule, and says whether a release declares the schedule.
func (s *schedules) applied(ctx context.Context, name string, do func() (producer.ApplyResult, error)) (Plan, error) {
	was, _ := s.s.Get(ctx, name) // do itself judges one that is new, or cannot be read
	did, err := do()
	out := Plan{Name: name, Result: string(did)}
	if did == producer.Changed && was.Origin == producer.Declared {
		out.Declared, out.DeclaredBy = true, was.Release
	}
	return out, err
}

func (s *schedules) Pause(ctx context.Context, name, reason string) (bool, error) {
	return s.s.Pause(ctx, name, reason)
}

func (s *schedules) Resume(ctx context.Context, name string) (bool, error) {
	return s.s.Resume(ctx, name)
}

func (s *schedules) Trigger(ctx context.Context, name string, payload json.RawMessage) (string, error) {
	return s.s.Trigger(ctx, name, payload)
}

func (s *schedules) Backfill(ctx context.Context, name string, b producer.Backfilling) (Backfilled, error) {
	out := Backfilled{Name: name, DryRun: b.DryRun}
	if b.Failed || b.DryRun {
		bad, err := s.judged(ctx, &out, b)
		if err != nil && b.Failed {
			return out, err
		}
		if b.Failed {
			b.Only = func(slot time.Time) bool { return bad[slot.UnixMilli()] }
		}
	}
	got, err := s.s.Backfill(ctx, name, b)
	out.Slots, out.Added, out.Refused, out.Why = got.Slots, got.Added, got.Refused, refusedBy(got.Why)
	return out, err
}

// failed are the verdicts of slots whose work was not done.
var failed = []audit.Verdict{audit.Missed, audit.Skipped, audit.Cancelled, audit.Failed, audit.Lost}

// judged counts the slots of a backfill by what became of them, and returns those whose work was not done.
func (s *schedules) judged(ctx context.Context, out *Backfilled, b producer.Backfilling) (map[int64]bool, error) {
	found, err := s.auditor.Slots(ctx, audit.Span{From: b.From, To: b.To, Schedules: []string{out.Name}})
	if err != nil {
		return nil, err
	}
	bad := map[int64]bool{}
	out.Outcomes = map[audit.Verdict]int64{}
	for _, l := range found.Lines {
		for i := range l.Slots {
			j := &l.Slots[i]
			if isBad := slices.Contains(failed, j.Verdict); isBad || !b.Failed {
				bad[j.Slot.UnixMilli()] = isBad
				out.Outcomes[j.Verdict]++
				out.First, out.Last = earlier(out.First, j.Slot), later(out.Last, j.Slot)
			}
		}
	}
	return bad, nil
}

func (s *schedules) Delete(ctx context.Context, name string) (Schedule, error) {
	was, _ := s.s.Get(ctx, name) // Delete itself judges one that cannot be read
	return s.scheduleOf(&was), s.s.Delete(ctx, name)
}
