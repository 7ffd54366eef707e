package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var (
	cancelScript = store.NewScript("cancel", store.Careful, WakeLib, source("lib_held"), source("lib_cancel"), source("lib_history"), source("cancel"))
	reviveScript = store.NewScript("revive", store.Careful, WakeLib, source("revive"))
	tidyScript   = store.NewScript("tidy", store.Careful, WakeLib, source("lib_held"), source("tidy"))
)

// Cancel removes a due task, or asks the instance that runs it to stop. It returns the state in which it found the task:
//   - due: the task is gone.
//   - running: the instance will cancel the handler's context, and settle the task as cancelled.
//   - dead or done: the task stays, or is removed if forget is set.
//
// Cancel returns [task.ErrNotFound] for an unknown task. It returns an error for a task whose record cannot be read, unless
// that task has ended and forget is set.
func (q *Queue) Cancel(ctx context.Context, id, reason string, forget bool) (task.State, error) {
	if forget {
		return q.cancel(ctx, id, reason, cancelAll)
	}
	return q.cancel(ctx, id, reason, cancelLive)
}

// Forget removes a task that is dead or done. A task that is not, such as one that was retried a moment ago, stays:
// [task.ErrNotFound].
func (q *Queue) Forget(ctx context.Context, id, reason string) error {
	_, err := q.cancel(ctx, id, reason, cancelEnded)
	return err
}

// The tasks that cancel.lua removes: one that waits; one that waits or has ended; only one that has ended.
const (
	cancelLive  = "0"
	cancelAll   = "1"
	cancelEnded = "2"
)

func (q *Queue) cancel(ctx context.Context, id, reason, which string) (task.State, error) {
	rec, err := q.rdb.HGet(ctx, q.keys.Tasks, id).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("task %q: %w", id, task.ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("task %q: %w", id, store.Classify(err))
	}
	t := task.Task{ID: id}
	if err := task.Decode(rec, &t); err != nil {
		if which == cancelLive {
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
	t.Attempt = t.Attempts
	note := q.Notes().Run(&t, history.Cancelled, 0, "", "")
	if _, _, _, other := history.Split(note); other {
		keys[len(keys)-1] = k.Runs
	}
	if t.Key != "" { // if the task was next for its key, the one after it moves up, and may go into any lane
		lanes, _, err := q.Lanes(ctx)
		if err != nil {
			return "", fmt.Errorf("cancel task %q: %w", id, err)
		}
		for _, l := range lanes {
			keys = append(keys, k.Due(l))
		}
	}
	v, err := cancelScript.Run(ctx, q.rdb, keys, []any{
		id, k.Wake, q.capOf(ctx), reason, which, t.Key, q.caps.history(), note, Actor(ctx),
	})
	if err != nil {
		return "", fmt.Errorf("cancel task %q: %w", id, err)
	}
	where, _ := v.(string)
	if where == "" {
		return "", fmt.Errorf("task %q: %w", id, task.ErrNotFound)
	}
	return task.State(where), nil
}

// Revival is a dead task that becomes due again.
type Revival struct {
	*task.Task
	// Schedule is the schedule that was read, at the revision Rev (0: there was none), to say what the task is now; or "".
	Schedule string
	Rev      int64
	// Anew says that the task is made from the schedule, and its payload has to be encrypted. Else it is as it was.
	Anew bool
}

// Revive makes dead tasks due again, as they were. See [Queue.ReviveAll].
func (q *Queue) Revive(ctx context.Context, tasks []*task.Task) (int, error) {
	list := make([]Revival, len(tasks))
	for i, t := range tasks {
		list[i].Task = t
	}
	n, _, err := q.ReviveAll(ctx, list)
	return n, err
}

// ReviveAll makes dead tasks due again. It sets their attempts to zero, keeps their errors, and returns how many of the tasks
// were dead, and which of the list it left alone because their schedule has another revision. It returns a [*task.FieldError], and does
// nothing, if a task has no type: its record could not be read, and must not be overwritten.
func (q *Queue) ReviveAll(ctx context.Context, list []Revival) (revived int, moved []int, err error) {
	for i := range list {
		if list[i].Type == "" {
			return 0, nil, &task.FieldError{Field: "type", Reason: "missing in task " + strconv.Quote(list[i].ID), Hint: "onbeat cannot retry a task that it cannot read"}
		}
	}
	for from := 0; from < len(list); from += MaxBatch {
		part := list[from:min(from+MaxBatch, len(list))]
		var lanes laneSet
		body := []any{len(part)}
		for i := range part {
			again := *part[i].Task
			again.Attempts = 0
			record := Rewrite
			if part[i].Anew {
				record = func(t *task.Task) []byte { return encodeSealed(nil, t, q.seal) }
			}
			body = append(body, again.ID, lanes.number(LaneOf(&again)), record(&again), slotMs(&again), part[i].Schedule, part[i].Rev)
		}
		k := &q.keys
		keys := []string{k.Dead, k.Tasks, k.Lanes, k.Meta, k.Watch, k.Events, k.Last}
		args := []any{k.Wake, q.capOf(ctx), Actor(ctx)}
		keys, args = lanes.declare(k, keys, args)
		v, err := reviveScript.Run(ctx, q.rdb, keys, append(args, body...))
		if err != nil {
			return revived, moved, fmt.Errorf("retry dead tasks: %w", err)
		}
		r := store.NewReply(v)
		r.Int()
		revived += int(r.Int())
		for _, i := range r.Indexes() {
			moved = append(moved, from+i)
		}
		if r.Err != nil {
			return revived, moved, fmt.Errorf("retry dead tasks: %w", r.Err)
		}
	}
	return revived, moved, nil
}

// slotMs returns the slot of a task, or 0 if it has none.
func slotMs(t *task.Task) int64 {
	if t.Slot.IsZero() {
		return 0
	}
	return t.Slot.UnixMilli()
}

const (
	// laneAge is how long an empty lane stays in the list of lanes.
	laneAge = time.Hour
)

// NamesKept is how long [Queue.ChangedSince] still names a deleted schedule: as long as its revisions are there to be archived.
const NamesKept = RetiredKept

// Tidy removes entries that have outlived their time or their cap, a bounded number in each call, and returns how many
// it removed. The leader calls it now and then. Tidy keeps a request to cancel for two leases, and at least a minute: the
// run may belong to a lost instance, and is recovered only when that instance's lease is over.
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
	args := []any{q.caps.Done, q.caps.Dead, MaxBatch, laneAge.Milliseconds(), k.Wake}
	keys, args = set.declare(k, keys, args)
	keys, args = append(keys, k.Revisions, k.Retired, k.Retirements, k.Pauses), append(args, max(2*lease, time.Minute).Milliseconds(), RetiredKept.Milliseconds())
	v, err := tidyScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return 0, fmt.Errorf("tidy: %w", err)
	}
	r := store.NewReply(v)
	removed := int(r.Int())
	return removed, r.Err
}
