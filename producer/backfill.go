package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/schedule"
	"github.com/onbeat/onbeat/task"
)

// Trigger runs a schedule's task once, now, outside its grid, and returns the task's ID. If the schedule's runs may not
// overlap, the task waits for the one that runs. A payload other than nil replaces the schedule's. An event records the
// caller; see [Schedules.By].
func (s *Schedules) Trigger(ctx context.Context, name string, payload json.RawMessage) (string, error) {
	status, err := s.Get(ctx, name)
	if err != nil {
		return "", err
	}
	grid, err := status.Schedule.Grid(status.Anchor)
	if err != nil {
		return "", err
	}
	now, next := time.Now(), time.Time{}
	if gap := grid.Gap(now); gap > 0 {
		next = now.Add(gap)
	}
	t := status.Schedule.slotTask(now, next)
	t.ID = name + "!" + task.NewID(now)
	t.Slot, t.Overlap = time.Time{}, task.Behind
	if payload != nil {
		t.Payload = payload
	}
	// The event comes first: a task that was enqueued must not be reported as a failure, or the caller triggers another.
	if err := s.q.Tell(ctx, "schedule triggered", "schedule", name, "task", t.ID, "by", queue.Actor(s.named(ctx))); err != nil {
		return "", err
	}
	return s.p.enqueue(ctx, t)
}

// maxBackfill bounds the slots of one call of Backfill.
const maxBackfill = 100_000

// BackfilledFor is how long a slot that was backfilled is not backfilled again, unless a caller says so.
const BackfilledFor = 7 * 24 * time.Hour

// Backfilling says which slots to backfill, and how.
type Backfilling struct {
	From, To time.Time // both inclusive
	// Again also runs slots of earlier backfills, unless they still wait or run; it replaces their dead tasks. Without it no slot is
	// added twice within [BackfilledFor], also by calls at the same time, and whatever became of its run.
	Again bool
	// Failed leaves out the slots that ran well, and those from before the schedule was made. Package admin judges them, and sets Only.
	Failed bool
	// Only, if not nil, leaves out the slots for which it returns false.
	Only func(slot time.Time) bool
	// DryRun only counts: it adds nothing, and leaves no event.
	DryRun bool
	// Progress, if not nil, is called after each batch.
	Progress func(done, of int)
}

// Backfilled is the result of a backfill.
type Backfilled struct {
	Slots int // how many slots the time has
	// Added is how many were added. An earlier backfill has added those that were neither added nor refused. A dry run with
	// Again counts all.
	Added int
	// Refused is how many Redis refused, such as for the limit of lanes, and Why says why it refused the first.
	Refused int
	Why     error
}

// took counts what became of tasks.
func (b *Backfilled) took(results []Result) {
	for _, r := range results {
		switch {
		case r.Err == nil:
			b.Added++
		case !errors.Is(r.Err, task.ErrDuplicate):
			if b.Refused++; b.Why == nil {
				b.Why = r.Err
			}
		}
	}
}

// Backfill runs the task of every slot between From and To, oldest first and behind all tasks on time, whether or not the
// slot ran when it was due. For slots before the anchor it follows the grid backwards. It refuses more than 100,000 slots,
// and a To in the future. A slot whose jitter has not passed waits for it. An event records the caller; see
// [Schedules.By].
func (s *Schedules) Backfill(ctx context.Context, name string, b Backfilling) (Backfilled, error) {
	status, err := s.Get(ctx, name)
	if err != nil {
		return Backfilled{}, err
	}
	now, err := s.q.Now(ctx)
	if err != nil {
		return Backfilled{}, err
	}
	grid, n, err := b.grid(&status, now)
	if err != nil || n == 0 {
		return Backfilled{}, err
	}
	if b.DryRun {
		return s.countFree(ctx, &status.Schedule, grid, b)
	}
	if b.Only != nil {
		n = 0
		for range b.slots(grid) {
			n++
		}
	}
	if err := s.q.Tell(ctx, "backfill", "schedule", name, "from", b.From.Format(time.RFC3339Nano), "to", b.To.Format(time.RFC3339Nano),
		"slots", strconv.FormatInt(n, 10), "by", queue.Actor(s.named(ctx))); err != nil {
		return Backfilled{}, err
	}
	out := Backfilled{Slots: int(n)}
	var batch []*task.Task
	done := 0
	add := s.q.Enqueue
	if b.Again {
		add = func(ctx context.Context, batch []*task.Task, _ bool) ([]error, int, error) {
			return s.q.EnqueueAgain(ctx, batch)
		}
	}
	flush := func() error {
		results, err := s.p.enqueueAll(ctx, batch, add)
		out.took(results)
		batch = batch[:0]
		if err == nil && b.Progress != nil {
			b.Progress(done, out.Slots)
		}
		return err
	}
	for slot := range b.slots(grid) {
		done++
		batch = append(batch, status.Schedule.backfillTask(slot, grid.Next(slot), now))
		if len(batch) == queue.MaxBatch {
			if err := flush(); err != nil {
				return out, err
			}
		}
	}
	return out, flush()
}

// slots are those of the time that are not left out.
func (b *Backfilling) slots(grid schedule.Grid) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for slot := range grid.Between(b.From.Add(-time.Nanosecond), b.To) {
			if (b.Only == nil || b.Only(slot)) && !yield(slot) {
				return
			}
		}
	}
}

// grid returns the schedule's grid over the requested time, and how many slots that has.
func (b *Backfilling) grid(status *Status, now time.Time) (schedule.Grid, int64, error) {
	if b.To.Before(b.From) {
		return schedule.Grid{}, 0, &task.FieldError{Field: "to", Value: b.To.Format(time.RFC3339), Reason: "is before from", Hint: "give the earlier time as from"}
	}
	if b.To.After(now) {
		return schedule.Grid{}, 0, &task.FieldError{Field: "to", Value: b.To.Format(time.RFC3339), Reason: "is in the future", Hint: "future slots run by themselves"}
	}
	grid, err := status.Schedule.Grid(anchorBefore(status, b.From))
	if err != nil {
		return grid, 0, err
	}
	n := grid.Count(b.From.Add(-time.Nanosecond), b.To)
	if n > maxBackfill {
		err = &task.FieldError{Field: "from", Value: b.From.Format(time.RFC3339), Reason: fmt.Sprintf("%d slots, the limit is %d", n, maxBackfill), Hint: "backfill a shorter period, then the next"}
	}
	return grid, n, err
}

// backfillTask returns the task that runs a slot again.
func (s *Schedule) backfillTask(slot, next, now time.Time) *task.Task {
	t := s.slotTask(slot, next)
	t.ID += backfillMark
	t.UniqueKey, t.UniqueFor = t.ID, BackfilledFor
	t.Priority, t.Keep = task.Low, -1
	t.Overlap = task.Behind // all are due at once, and the user asked for each: they run one after the other
	if due := s.JitterFor(s.Name, slot); due.After(now) {
		t.Due = due
	}
	return t
}

// countFree says how many slots there are, and how many of them a backfill would add.
func (s *Schedules) countFree(ctx context.Context, sched *Schedule, grid schedule.Grid, b Backfilling) (out Backfilled, err error) {
	var ids []string
	for slot := range b.slots(grid) {
		ids = append(ids, task.SlotID(sched.Name, slot)+backfillMark)
	}
	out.Slots, out.Added = len(ids), len(ids)
	if b.Again {
		return out, nil
	}
	held, err := s.q.UniqueHeld(ctx, ids)
	out.Added -= held
	return out, err
}

// anchorBefore returns a slot zero on the same grid that is not after from.
func anchorBefore(s *Status, from time.Time) time.Time {
	if !s.Anchor.After(from) {
		return s.Anchor
	}
	if s.Schedule.Every == 0 {
		return from
	}
	every := s.Schedule.Every.Milliseconds()
	k := (s.Anchor.UnixMilli() - from.UnixMilli() + every - 1) / every
	return time.UnixMilli(s.Anchor.UnixMilli() - k*every).UTC()
}
