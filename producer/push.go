package producer

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
)

// ahead is how far beyond the horizon slots are pushed once a push is needed at all, so that a frequent schedule is pushed
// in batches and not slot by slot.
func (t *term) ahead() time.Duration { return t.cfg.Horizon / 4 }

// wait returns how long until a schedule's next slot comes within the horizon.
func (t *term) wait() time.Duration {
	if len(t.behind) > 0 {
		return 0
	}
	if len(t.plan) == 0 {
		return time.Hour
	}
	at := quiet(t.plan[0].next.Add(-t.cfg.Horizon), t.ahead()/2)
	return max(at.Sub(t.clock.Now()), 0) // push uses this clock: after a wait by another, it might find nothing to do
}

// quiet returns a moment before at, by less than most, at which little is due; without such a moment it returns at. Most slots
// lie on whole seconds, and a push at that moment would delay them.
func quiet(at time.Time, most time.Duration) time.Time {
	half := at.Add(-time.Second / 2).Truncate(time.Second).Add(time.Second / 2)
	if at.Sub(half) < most {
		return half
	}
	return at
}

// push pushes the slots of every schedule whose next slot is within the horizon, or soon will be. The earliest slots go
// first: a new leader with many schedules must not fill the horizon of one schedule before it pushes the next slot of
// another. Then it pushes a part of the slots that schedules are behind with.
func (t *term) push(ctx context.Context) error {
	if err := t.pushSoon(ctx); err != nil {
		return err
	}
	t.since = time.Time{} // all slots that had come are pushed
	now := t.clock.Now()
	if err := t.pushUntil(ctx, time.Time{}, now.Add(t.cfg.Horizon+t.ahead()/2), now.Add(t.cfg.Horizon+t.ahead())); err != nil {
		return err
	}
	return t.repay(ctx)
}

// pushSoon pushes the slots that have come and those that come next.
func (t *term) pushSoon(ctx context.Context) error {
	first := t.clock.Now().Add(min(time.Second, t.cfg.Horizon/2))
	return t.pushUntil(ctx, time.Time{}, first, first)
}

// late returns the moment up to which slots that are not pushed count as missed although an instance leads. A slot that is
// pushed late runs late, just like one that was pushed ahead and waits. Only when the leader pushed nothing for longer than
// it pushes ahead do its slots count as missed, as in a time without a leader. The time that the leader needs to take stock
// is not counted.
func (t *term) late(now time.Time) time.Time {
	if !t.since.IsZero() {
		now = t.since
	}
	return maxTime(now.Add(-t.forgives()), t.outage)
}

// forgives returns how late a slot may be pushed without counting as missed.
func (t *term) forgives() time.Duration { return max(t.cfg.Horizon, lateGrace) }

// pushUntil makes steps for the schedules whose next slot is not after soon, and moves them on to until. Slots up to missed
// count as missed; a zero missed means those that are too late. It ends early when Redis has only half of a schedule: the
// leader takes stock first.
func (t *term) pushUntil(ctx context.Context, missed, soon, until time.Time) error {
	for {
		now := t.clock.Now()
		late := missed
		if late.IsZero() {
			late = t.late(now)
		}
		more, err := t.pushOnce(ctx, now, late, soon, until)
		if err != nil || !more || t.halves {
			return err
		}
	}
}

// step returns the next step of a schedule. Slots that a change took back had been pushed ahead, so they run late, however
// long ago they were due.
func (t *term) step(e *entry, now, missed, until time.Time) (move, bool) {
	back := e.takenBack(t.cfg.Horizon + t.ahead())
	if e.next.After(t.outage) && !e.next.After(missed) && !e.next.After(back) {
		return e.step(now, before(e.next), minTime(until, back))
	}
	return e.step(now, missed, until)
}

// pushOnce makes one step for each schedule that has one, and reports whether any may have another.
func (t *term) pushOnce(ctx context.Context, now, missed, soon, until time.Time) (more bool, err error) {
	var moves []move
	var rest []*entry
	for size := 0; len(t.plan) > 0 && !t.plan[0].next.After(soon) && size < pushBatch; {
		e := t.plan[0]
		next := e.next
		if m, ok := t.step(e, now, missed, until); ok {
			moves = append(moves, m)
			size += 1 + len(m.step.Push)
		}
		rest = append(rest, e)
		e.next = time.Time{} // out of the plan until the step is done
		t.plan.fix(e)
		e.next = next
	}
	inOrder(moves)
	err = t.advance(ctx, moves)
	for _, e := range rest {
		if t.entries[e.s.Name] == e {
			t.plan.fix(e)
		}
	}
	return len(moves) > 0 && len(t.plan) > 0 && !t.plan[0].next.After(soon), err
}

// inOrder sorts moves by their next slot, and moves of the same moment by the name of the schedule. Redis keeps tasks that
// are due at once in the order of their IDs, which begin with that name; to add them in that order costs it the least.
func inOrder(moves []move) {
	slices.SortFunc(moves, func(a, b move) int {
		return cmp.Or(a.e.next.Compare(b.e.next), strings.Compare(a.e.s.Name, b.e.s.Name))
	})
}

// pushBatch is about how many slots are worked out before they are sent.
const pushBatch = 10 * queue.MaxBatch

// move is a step of a schedule and the state that it leads to.
type move struct {
	e      *entry
	step   queue.Step
	last   queue.Last
	behind queue.Behind
	onTime bool // it pushes the next slots, not those that the schedule is behind with
}

// advance sends steps and moves their schedules on. It reads again those that another caller moved meanwhile.
func (t *term) advance(ctx context.Context, moves []move) error {
	if len(moves) == 0 {
		return nil
	}
	steps := make([]queue.Step, len(moves))
	for i := range moves {
		m := &moves[i]
		if m.onTime && len(m.step.Push) > 0 {
			m.step.Probe = m.e.probe(t.clock.Now(), t.cfg.Backlog)
		}
		for _, p := range m.step.Push {
			p.Task.Secret = secret.Join(p.Task.Secret, t.cfg.Secret[p.Task.Type])
		}
		steps[i] = m.step
	}
	asked := time.Now()
	now, dropped, moved, err := t.sendTraced(ctx, steps)
	if err != nil {
		// Some steps may have been made. Reading again tells the truth in either case.
		return t.afterError(ctx, moves, err)
	}
	t.observe(steps, moved)
	if dropped > 0 && len(steps[0].Drop) > 0 {
		t.log.Info().Int("slots", dropped).Msg("dropped slots that fell due while no instance led, by their missed policy")
	}
	if now.After(t.clock.Now().Add(time.Second)) || now.Before(t.clock.Now().Add(-time.Second)) {
		t.clock.Set(asked, time.Now(), now) // the clock of Redis was changed
	}
	var again []string
	for _, i := range moved {
		again = append(again, moves[i].e.s.Name)
		moves[i].e = nil
	}
	for i, m := range moves {
		if m.e != nil {
			m.last.Runs = max(m.last.Runs-int64(steps[i].Dropped), 0)
			m.e.follow(&m)
			if m.onTime {
				t.crowd(m.e, &steps[i])
			}
			t.plan.fix(m.e)
			t.owe(m.e)
		}
	}
	return t.reload(ctx, again)
}

func (t *term) afterError(ctx context.Context, moves []move, err error) error {
	if errors.Is(err, queue.ErrNotLeader) || errors.Is(err, queue.ErrFenced) {
		return err // no step was made, and this leader may know more than Redis does
	}
	names := make([]string, len(moves))
	for i := range moves {
		names[i] = moves[i].e.s.Name
	}
	_ = t.reload(ctx, names) // if this fails too, the next steps are refused as stale, and the schedules are read again then
	for _, m := range moves {
		if t.entries[m.e.s.Name] == m.e {
			t.owe(m.e)
		}
	}
	return err
}

// reload reads schedules again. A schedule that is missing was deleted, or Redis lost it: then it is restored first.
func (t *term) reload(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	list, err := t.q.SchedulesNamed(ctx, names)
	if err == nil && slices.ContainsFunc(list, queue.Stored.Absent) {
		if err = t.restore(ctx, t.known(), names); err == nil {
			list, err = t.q.SchedulesNamed(ctx, names)
		}
	}
	if err != nil {
		return err
	}
	for _, st := range list {
		t.put(st)
	}
	return nil
}

// refresh reads what has changed since the schedules were last read.
func (t *term) refresh(ctx context.Context) error {
	names, version, err := t.q.ChangedSince(ctx, t.version)
	if err != nil {
		return err
	}
	if slices.Contains(names, queue.Mended) {
		t.halves = true // t.version stays until stock is taken: by it the loss is known
		return nil
	}
	if err := t.reload(ctx, names); err != nil {
		return err
	}
	t.version = version
	return nil
}

// catchUp deals with the slots missed while no instance led: slots that were pushed and not claimed, and slots that were never
// pushed, up to the last moment before this term began. Consumers wait until it is done, so it only puts off the
// missed slots that are to run behind all tasks on time.
func (t *term) catchUp(ctx context.Context, missed time.Time) error {
	var moves []move
	for _, e := range t.entries {
		drops := e.sweep(missed, 2*(t.cfg.Horizon+t.ahead()))
		if len(drops) > 0 {
			step := queue.Step{Name: e.s.Name, Expect: e.raw, Becomes: e.raw, Behind: e.owed, Remains: e.owed, Drop: drops}
			moves = append(moves, move{e: e, step: step, last: e.last, behind: e.behind})
		}
	}
	if err := t.advance(ctx, moves); err != nil {
		return err
	}
	now := t.clock.Now() // later slots wait until the gate is open
	return t.pushUntil(ctx, missed, now, now)
}
