package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

var (
	cancelScript = store.NewScript("cancel", store.Careful, WakeLib, source("lib_held"), source("lib_cancel"), source("lib_history"), source("cancel"))
	reviveScript = store.NewScript("revive", store.Careful, WakeLib, source("revive"))
	tidyScript   = store.NewScript("tidy", store.Careful, WakeLib, source("lib_held"), source("tidy"))
)

// Cancel takes a due task out, or asks whoever runs it to stop. It returns where the task was: due (it is gone),
// running (the handler's context ends; the task then counts as cancelled), dead or done (left alone, unless forget is
// set: then it is forgotten). It returns [ErrNotFound] for an unknown task, and an error for one whose record cannot be
// read, unless it is to be forgotten and has ended.
func (q *Queue) Cancel(ctx context.Context, id, reason string, forget bool) (task.State, error) {
	rec, err := q.rdb.HGet(ctx, q.keys.Tasks, id).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("task %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("task %q: %w", id, store.Classify(err))
	}
	t := task.Task{ID: id}
	if err := task.Decode(rec, &t); err != nil {
		if !forget {
			return "", fmt.Errorf("task %q: %w", id, err)
		}
		if _, _, err := q.findUnreadable(ctx, id, err); err != nil {
			return "", fmt.Errorf("task %q: %w", id, err)
		}
		t = task.Task{ID: id}
	}
	k := &q.keys
	keys := []string{k.Tasks, k.Held, k.Cancel, k.Dead, k.Done, k.Events, k.Meta, k.Due(LaneOf(&t)), k.Active, k.Watch,
		k.History}
	flag := "0"
	if forget {
		flag = "1"
	}
	t.Attempt = t.Attempts
	note := history.Run(&t, history.Cancelled, 0, "")
	if t.Key != "" { // it may be its turn: then that of the next, which may lie in any lane
		lanes, _, err := q.Lanes(ctx)
		if err != nil {
			return "", fmt.Errorf("cancel task %q: %w", id, err)
		}
		for _, l := range lanes {
			keys = append(keys, k.Due(l))
		}
	}
	v, err := cancelScript.Run(ctx, q.rdb, keys, []any{
		id, k.Wake, q.caps.Events, reason, flag, t.Key, q.caps.History, note,
	})
	if err != nil {
		return "", fmt.Errorf("cancel task %q: %w", id, err)
	}
	where, _ := v.(string)
	if where == "" {
		return "", fmt.Errorf("task %q: %w", id, ErrNotFound)
	}
	return task.State(where), nil
}

// Revive makes dead tasks due again, with their attempts counted from zero and their errors kept. It returns how many
// were dead. It refuses one without a type, with a [*task.FieldError]: its record could not be read, and is not to be
// written over.
func (q *Queue) Revive(ctx context.Context, tasks []*task.Task) (int, error) {
	for _, t := range tasks {
		if t.Type == "" {
			return 0, &task.FieldError{Field: "type", Reason: "missing, of task " + strconv.Quote(t.ID), Hint: "a task that cannot be read cannot be retried"}
		}
	}
	revived := 0
	for from := 0; from < len(tasks); from += MaxBatch {
		part := tasks[from:min(from+MaxBatch, len(tasks))]
		var lanes laneSet
		body := []any{len(part)}
		for _, t := range part {
			again := *t
			again.Attempts = 0
			body = append(body, t.ID, lanes.number(LaneOf(t)), Rewrite(&again))
		}
		k := &q.keys
		keys := []string{k.Dead, k.Tasks, k.Lanes, k.Meta, k.Watch, k.Events}
		args := []any{k.Wake, q.caps.Events}
		keys, args = lanes.declare(k, keys, args)
		v, err := reviveScript.Run(ctx, q.rdb, keys, append(args, body...))
		if err != nil {
			return revived, fmt.Errorf("retry dead tasks: %w", err)
		}
		r := store.NewReply(v)
		r.Int()
		revived += int(r.Int())
		if r.Err != nil {
			return revived, fmt.Errorf("retry dead tasks: %w", r.Err)
		}
	}
	return revived, nil
}

const (
	// laneAge is how long a lane is kept while nothing waits in it.
	laneAge = time.Hour
)

// NamesKept is how long a schedule that was deleted is still named to those who follow changes.
const NamesKept = 24 * time.Hour

// Tidy removes what has outlived its time or its cap, a bounded share at a time, and returns how much it removed. The
// leader calls it now and then. A request to cancel is kept for two leases, and a minute at least: the run of an instance
// that was lost is taken back when its lease is over.
func (q *Queue) Tidy(ctx context.Context, lease time.Duration) (int, error) {
	lanes, _, err := q.Lanes(ctx)
	if err != nil {
		return 0, err
	}
	set := laneSet{}
	for _, l := range lanes {
		set.number(l)
	}
	k := &q.keys
	keys := []string{k.Done, k.Dead, k.Tasks, k.Lanes, k.Meta, k.Cancel, k.Active, k.Held, k.Watch,
		k.Schedules, k.Changed}
	args := []any{q.caps.Done, q.caps.Dead, MaxBatch, laneAge.Milliseconds(), k.Wake, NamesKept.Milliseconds()}
	keys, args = set.declare(k, keys, args)
	keys, args = append(keys, k.Retired, k.Retirements), append(args, max(2*lease, time.Minute).Milliseconds(), RetiredKept.Milliseconds())
	v, err := tidyScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return 0, fmt.Errorf("tidy: %w", err)
	}
	r := store.NewReply(v)
	removed := int(r.Int())
	return removed, r.Err
}
