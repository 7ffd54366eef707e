package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// Found is a task and its state when it was read. The task may have moved since.
type Found struct {
	Task  *task.Task
	State task.State
	// Held is set for a due task that waits for its key.
	Held bool
	// Gen is the generation that runs the task, if it is running.
	Gen int64
	// At depends on the state: when the task is due, was claimed, or died, or until when it is kept.
	At time.Time
	// Unreadable is why the task's record cannot be read. Task then has only its ID.
	Unreadable error
}

// generation is a generation that may hold claims: it is registered, or was declared dead and is not yet recovered.
type generation struct {
	gen      int64
	instance string // "" for a dead one
	release  string
}

// Task finds a task by its ID, in any state. It returns [task.ErrNotFound] for an unknown task, and an error for a task whose
// record cannot be read, unless the task has ended.
func (q *Queue) Task(ctx context.Context, id string) (Found, error) {
	// While find looks, a task may move from a place that find has yet to look at to one that it has looked at. That does
	// not happen many times in a row.
	for range 5 {
		f, ok, err := q.find(ctx, id)
		if err != nil {
			return Found{}, fmt.Errorf("task %q: %w", id, err)
		}
		if ok {
			return f, nil
		}
	}
	return Found{}, fmt.Errorf("task %q: %w", id, task.ErrNotFound)
}

func (q *Queue) find(ctx context.Context, id string) (f Found, ok bool, err error) {
	k := &q.keys
	rec, err := q.rdb.HGet(ctx, k.Tasks, id).Result()
	if errors.Is(err, redis.Nil) {
		return f, false, task.ErrNotFound
	}
	if err != nil {
		return f, false, store.Classify(err)
	}
	t := &task.Task{ID: id}
	if err := task.Decode(rec, t); err != nil {
		return q.findUnreadable(ctx, id, err)
	}

	pipe := q.rdb.Pipeline()
	due := pipe.ZScore(ctx, k.Due(LaneOf(t)), id)
	dead := pipe.ZScore(ctx, k.Dead, id)
	done := pipe.ZScore(ctx, k.Done, id)
	members := pipe.HGetAll(ctx, k.Members)
	orphans := pipe.ZRange(ctx, k.Orphans, 0, -1)
	if err := exec(ctx, pipe); err != nil {
		return f, false, err
	}
	switch {
	case due.Err() == nil:
		f = foundDue(t, due.Val())
	case dead.Err() == nil:
		f = Found{Task: t, State: task.Dead, At: store.FromMs(store.ClampMs(dead.Val()))}
	case done.Err() == nil:
		f = Found{Task: t, State: task.Done, At: store.FromMs(store.ClampMs(done.Val()))}
	default:
		if f, ok, err = q.findRunning(ctx, t, generations(members.Val(), orphans.Val())); ok || err != nil {
			return f, ok, err
		}
		return q.findHeld(ctx, t)
	}
	return f, true, nil
}

// findUnreadable finds an ended task by its ID alone. It cannot find another one, because only the record says where that
// task lies: then it returns why.
func (q *Queue) findUnreadable(ctx context.Context, id string, why error) (f Found, ok bool, err error) {
	pipe := q.rdb.Pipeline()
	dead := pipe.ZScore(ctx, q.keys.Dead, id)
	done := pipe.ZScore(ctx, q.keys.Done, id)
	if err := exec(ctx, pipe); err != nil {
		return f, false, err
	}
	f = Found{Task: &task.Task{ID: id}, Unreadable: why}
	switch {
	case dead.Err() == nil:
		f.State, f.At = task.Dead, store.FromMs(store.ClampMs(dead.Val()))
	case done.Err() == nil:
		f.State, f.At = task.Done, store.FromMs(store.ClampMs(done.Val()))
	default:
		return Found{}, false, why
	}
	return f, true, nil
}

// exec sends a pipeline. An entry that does not exist is not an error.
func exec(ctx context.Context, pipe redis.Pipeliner) error {
	cmds, err := pipe.Exec(ctx)
	if err == nil {
		return nil
	}
	for _, cmd := range cmds {
		if e := cmd.Err(); e != nil && !errors.Is(e, redis.Nil) {
			return store.Classify(e)
		}
	}
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return store.Classify(err)
}

func foundDue(t *task.Task, score float64) Found {
	at := store.ScoreTime(score)
	if t.Due.IsZero() {
		t.Due = at
	}
	return Found{Task: t, State: task.Due, At: at}
}

// generations lists the generations that may hold claims.
func generations(members map[string]string, orphans []string) []generation {
	list := make([]generation, 0, len(members)+len(orphans))
	for id, member := range members {
		parts := strings.SplitN(member, " ", 7)
		g := generation{instance: id}
		g.gen, _ = strconv.ParseInt(parts[0], 10, 64)
		if len(parts) == 7 {
			g.release = parts[6]
		}
		list = append(list, g)
	}
	for _, o := range orphans {
		gen, err := strconv.ParseInt(o, 10, 64)
		if err == nil {
			list = append(list, generation{gen: gen})
		}
	}
	return list
}

func (q *Queue) findRunning(ctx context.Context, t *task.Task, gens []generation) (f Found, ok bool, err error) {
	if len(gens) == 0 {
		return f, false, nil
	}
	pipe := q.rdb.Pipeline()
	values := make([]*redis.StringCmd, len(gens))
	for i, g := range gens {
		values[i] = pipe.HGet(ctx, q.keys.Running(g.gen), t.ID)
	}
	if err := exec(ctx, pipe); err != nil {
		return f, false, err
	}
	for i, v := range values {
		if v.Err() == nil {
			return foundRunning(t, v.Val(), gens[i]), true, nil
		}
	}
	return f, false, nil
}

// parseClaim reads a value of a running hash: "fence claimed due <1f>limit..".
func parseClaim(value string) (fence int64, at, due time.Time, ok bool) {
	plain, _, _ := strings.Cut(value, "\x1f")
	parts := strings.Fields(plain)
	if len(parts) != 3 {
		return 0, at, due, false
	}
	fence, _ = strconv.ParseInt(parts[0], 10, 64)
	ms, _ := strconv.ParseInt(parts[1], 10, 64)
	return fence, store.FromMs(store.ClampMs(float64(ms))), parseScore(parts[2]), true
}

func foundRunning(t *task.Task, value string, g generation) Found {
	fence, at, due, ok := parseClaim(value)
	if ok {
		claimed(t, at, fence, g.instance, due)
		t.Release = g.release
	}
	return Found{Task: t, State: task.Running, Gen: g.gen, At: at}
}

// findHeld looks for a task among those that wait for its key, a part at a time.
func (q *Queue) findHeld(ctx context.Context, t *task.Task) (f Found, ok bool, err error) {
	if t.Key == "" {
		return f, false, nil
	}
	low, high := "["+t.Key+heldSep, "("+t.Key+heldEnd
	for {
		members, err := q.rdb.ZRangeByLex(ctx, q.keys.Held, &redis.ZRangeBy{Min: low, Max: high, Count: MaxBatch}).Result()
		if err != nil {
			return f, false, store.Classify(err)
		}
		for _, m := range members {
			if id, due, _, ok := parseHeld(m); ok && id == t.ID {
				f = foundDue(t, due)
				f.Held = true
				return f, true, nil
			}
		}
		if len(members) < MaxBatch {
			return f, false, nil
		}
		low = "(" + members[len(members)-1]
	}
}

// heldSep parts the fields of a member of held. The members of a key sort between the key with heldSep and the key with heldEnd.
const (
	heldSep = "\x1f"
	heldEnd = "\x20"
)

// parseHeld reads KEY <1f> DUE <1f> DUE-SET <1f> ID.
func parseHeld(member string) (id string, due float64, set string, ok bool) {
	parts := strings.Split(member, heldSep)
	if len(parts) != 4 {
		return "", 0, "", false
	}
	due, err := strconv.ParseFloat(parts[1], 64)
	return parts[3], due, parts[2], err == nil
}
