package producer

import (
	"context"
	"fmt"
	"slices"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// Revive makes dead tasks due again, and returns how many of them were dead. A task of a slot gets what its schedule says now: the type,
// payload, queue, priority, timeout, attempts and backoff that a slot of now would have. It keeps its ID, slot, errors and place behind its
// key. Revive returns the IDs of those tasks, anew.
//
// With asItWas, or if the schedule is gone or cannot be read here, a task is as it was; so is a triggered one, whose payload its caller
// may have chosen.
func (s *Schedules) Revive(ctx context.Context, list []*task.Task, asItWas bool) (revived int, anew []string, err error) {
	if asItWas {
		n, err := s.q.Revive(ctx, list)
		return n, nil, err
	}
	for range changeTries {
		revivals, err := s.revivals(ctx, list)
		if err != nil {
			return revived, anew, err
		}
		n, moved, err := s.q.ReviveAll(ctx, revivals)
		revived += n
		var left []*task.Task
		for i := range revivals {
			switch {
			case slices.Contains(moved, i):
				left = append(left, list[i])
			case revivals[i].Anew:
				anew = append(anew, list[i].ID)
			}
		}
		if list = left; err != nil || len(list) == 0 {
			return revived, anew, err
		}
	}
	return revived, anew, fmt.Errorf("schedule %q: %w", list[0].Schedule, task.ErrChanged)
}

// revivals says what each task is now.
func (s *Schedules) revivals(ctx context.Context, list []*task.Task) ([]queue.Revival, error) {
	var names []string
	for _, t := range list {
		if ofSlot(t) {
			names = append(names, t.Schedule)
		}
	}
	slices.Sort(names)
	stored, err := s.q.SchedulesNamed(ctx, slices.Compact(names))
	if err != nil {
		return nil, err
	}
	by := make(map[string]queue.Stored, len(stored))
	for _, st := range stored {
		by[st.Name] = st
	}
	out := make([]queue.Revival, len(list))
	for i, t := range list {
		if out[i].Task = t; ofSlot(t) {
			out[i] = s.revival(by[t.Schedule], t)
		}
	}
	return out, nil
}

// ofSlot reports whether a task was made for a slot of a schedule.
func ofSlot(t *task.Task) bool { return t.Schedule != "" && !t.Slot.IsZero() }

// revival says what a slot's task is, as its schedule is stored now.
func (s *Schedules) revival(st queue.Stored, t *task.Task) queue.Revival {
	out := queue.Revival{Task: t, Schedule: t.Schedule}
	last, err := queue.ParseLast(st.Last)
	if err != nil { // it is gone, or only half of it is there
		return out
	}
	out.Rev = last.Rev
	d, err := readDefinition(st)
	if err != nil {
		return out
	}
	grid, err := d.Grid(last.Anchor)
	if err != nil {
		return out
	}
	now, was := d.slotTask(t.Slot, grid.Next(t.Slot)), *t
	was.Type, was.Payload, was.Secret, was.Sealed = now.Type, now.Payload, s.p.Secret(now.Type, now.Secret), now.Sealed
	if now.Type == t.Type { // this process may not know what is secret of the type
		was.Secret = secret.Join(was.Secret, t.Secret)
	}
	was.Queue, was.Priority, was.Timeout, was.MaxAttempts, was.Backoff = now.Queue, now.Priority, now.Timeout, now.MaxAttempts, now.Backoff
	out.Task, out.Anew = &was, true
	return out
}
