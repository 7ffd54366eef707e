package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var noticesScript = store.NewScript("notices", store.Careful, source("notices"))

// noticesKept is how long what was noted of notifications outlives the last note.
const noticesKept = 30 * 24 * time.Hour

// NoticeChange changes the notes of notifications.
type NoticeChange struct {
	// Name is the name of a text. The change happens only if the text is still Was ("": none).
	Name, Was string
	Set       map[string]string
	Remove    []string
}

// Notices returns the leaders' notes of notifications, by name. Package notify knows their meaning.
func (q *Queue) Notices(ctx context.Context) (map[string]string, error) {
	all, err := q.rdb.HGetAll(ctx, q.keys.Notices).Result()
	if err != nil {
		return nil, fmt.Errorf("read the notices: %w", store.Classify(err))
	}
	return all, nil
}

// ChangeNotices makes a change. It returns [ErrNotLeader], [ErrFenced], or [task.ErrChanged] if the text was another one, and does
// nothing then.
func (q *Queue) ChangeNotices(ctx context.Context, term Term, c NoticeChange) error {
	return q.changeNotes(ctx, term, c, q.keys.Notices)
}

// NoteHealth makes a change to what is noted of the health of schedules, as ChangeNotices does. It notes nothing of a schedule that is
// gone.
func (q *Queue) NoteHealth(ctx context.Context, term Term, c NoticeChange) error {
	return q.changeNotes(ctx, term, c, q.keys.Health, q.keys.Last)
}

// Health returns what is noted of schedules, in their order; "" if nothing is.
func (q *Queue) Health(ctx context.Context, names []string) ([]string, error) {
	list := make([]string, 0, len(names))
	for part := range slices.Chunk(names, MaxBatch) {
		got, err := q.rdb.HMGet(ctx, q.keys.Health, part...).Result()
		if err != nil {
			return nil, fmt.Errorf("read the health of schedules: %w", store.Classify(err))
		}
		for _, v := range got {
			text, _ := v.(string)
			list = append(list, text)
		}
	}
	return list, nil
}

// changeNotes takes the hash and, if names must be fields of another one to be noted, that one.
func (q *Queue) changeNotes(ctx context.Context, term Term, c NoticeChange, keys ...string) error {
	args := []any{term.Instance, term.Gen, term.Epoch, c.Name, c.Was, noticesKept.Milliseconds(), len(c.Set)}
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		args = append(args, name, c.Set[name])
	}
	for _, name := range c.Remove {
		args = append(args, name)
	}
	v, err := noticesScript.Run(ctx, q.rdb, append([]string{q.keys.Instances, q.keys.Members, q.keys.Leader}, keys...), args)
	if err != nil {
		return fmt.Errorf("note for the next leader: %w", err)
	}
	r := store.NewReply(v)
	r.Int()
	if r.Int() == 0 && r.Err == nil {
		return fmt.Errorf("note for the next leader: %w", task.ErrChanged)
	}
	return r.Err
}

// Ends are the IDs of the newest entries of the streams; "" for one that is empty.
type Ends struct{ Event, Entry, Run string }

// Ends returns the ends of the events, of the history, and of the runs of other tasks.
func (q *Queue) Ends(ctx context.Context) (Ends, error) {
	pipe := q.rdb.Pipeline()
	last := make([]*redis.XMessageSliceCmd, 3)
	for i, stream := range []string{q.keys.Events, q.keys.History, q.keys.Runs} {
		last[i] = pipe.XRevRangeN(ctx, stream, "+", "-", 1)
	}
	if err := exec(ctx, pipe); err != nil {
		return Ends{}, fmt.Errorf("look at the ends of the streams: %w", err)
	}
	id := func(c *redis.XMessageSliceCmd) string {
		if len(c.Val()) == 0 {
			return ""
		}
		return c.Val()[0].ID
	}
	return Ends{id(last[0]), id(last[1]), id(last[2])}, nil
}

// Death is a task that died, and when.
type Death struct {
	ID string
	At time.Time
}

// DiedBetween lists the tasks that died from a moment on, and before another, and are still dead: the first to die first. It
// reads a page at a time.
func (q *Queue) DiedBetween(ctx context.Context, from, to time.Time) (list []Death, err error) {
	by := &redis.ZRangeBy{
		Min: strconv.FormatInt(store.Ms(from), 10), Max: "(" + strconv.FormatInt(store.Ms(to), 10), Count: MaxBatch,
	}
	for {
		rows, err := q.rdb.ZRangeByScoreWithScores(ctx, q.keys.Dead, by).Result()
		if err != nil {
			return nil, fmt.Errorf("list the dead: %w", store.Classify(err))
		}
		for _, z := range rows {
			r := rowOf(z)
			list = append(list, Death{ID: r.id, At: store.FromMs(store.ClampMs(r.score))})
		}
		if len(rows) < MaxBatch {
			return list, nil
		}
		by.Offset += MaxBatch
	}
}

// Records reads the records of tasks, without their payloads. It leaves out those that are gone, or that cannot be read.
func (q *Queue) Records(ctx context.Context, ids []string) (map[string]*task.Task, error) {
	found := map[string]*task.Task{}
	for len(ids) > 0 {
		records, err := q.records(ctx, ids)
		if err != nil {
			return nil, err
		}
		for i, rec := range records {
			text, ok := rec.(string)
			t := &task.Task{ID: ids[i]}
			if ok && task.Decode(text, t) == nil {
				t.Payload, t.Sealed = nil, nil
				found[t.ID] = t
			}
		}
		ids = ids[len(records):]
	}
	return found, nil
}
