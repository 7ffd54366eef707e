package foreign

import (
	"cmp"
	"context"
	_ "embed" // the scripts
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/task"
)

//go:embed asynq_take.lua
var asynqTakeSource string

//go:embed asynq_drop.lua
var asynqDropSource string

//go:embed asynq_back.lua
var asynqBackSource string

var asynqTake, asynqDrop, asynqBack = redis.NewScript(asynqTakeSource), redis.NewScript(asynqDropSource), redis.NewScript(asynqBackSource)

// asynqBatch is how many tasks move at once.
const asynqBatch = 500

// An AsynqMove moves the tasks of a queue of asynq that wait. It takes them out of asynq's hands, adds them, and has asynq forget them. So no
// task runs twice, and if it ends in between, the next move goes on with what is held. A task that is refused only when it is added goes back.
type AsynqMove struct {
	Redis redis.UniversalClient
	Queue string
	// Check refuses a task that onbeat cannot have: it stays with asynq.
	Check func(*task.Task) error
	// Add adds tasks. It returns those that onbeat refuses, with the reason, and has added the others unless it fails. A task that is
	// there already counts as added.
	Add func(context.Context, []*task.Task) (refused map[*task.Task]error, err error)
	// Stays hears of each task that stays, with the reason. A move before this one may have added a task that is held: it does not go back.
	Stays func(id string, held bool, why error)

	moved int
}

// Run moves them, and returns how many were moved, also with an error.
func (m *AsynqMove) Run(ctx context.Context) (moved int, err error) {
	for _, state := range append([]string{asynqHeld}, asynqStates...) {
		if err := m.each(ctx, state); err != nil {
			return m.moved, err
		}
	}
	return m.moved, nil
}

func (m *AsynqMove) key(end string) string { return asynqKey(m.Queue, end) }

// waiting is a task that waits, by what asynq's own set says of it.
type waiting struct {
	id  string
	due float64
}

// each moves the tasks of a state. Those that stay are passed over.
func (m *AsynqMove) each(ctx context.Context, state string) error {
	for skipped := 0; ; {
		batch, err := m.page(ctx, state, skipped)
		if err != nil || len(batch) == 0 {
			return err
		}
		gone, err := m.batch(ctx, batch, state != asynqHeld)
		if err != nil {
			return err
		}
		skipped += len(batch) - gone
	}
}

// page returns the next tasks of a state, beyond those that stay: the oldest of the pending ones, or those that are due first.
func (m *AsynqMove) page(ctx context.Context, state string, skipped int) (list []waiting, err error) {
	if state == "pending" { // asynq takes from the end
		ids, err := m.Redis.LRange(ctx, m.key(state), int64(-asynqBatch-skipped), int64(-1-skipped)).Result()
		for i := len(ids) - 1; i >= 0; i-- {
			list = append(list, waiting{id: ids[i]})
		}
		return list, err
	}
	found, err := m.Redis.ZRangeWithScores(ctx, m.key(state), int64(skipped), int64(skipped+asynqBatch-1)).Result()
	for _, z := range found {
		id, _ := z.Member.(string)
		list = append(list, waiting{id, z.Score})
	}
	return list, err
}

// batch moves tasks, and returns how many are no longer where they were.
func (m *AsynqMove) batch(ctx context.Context, batch []waiting, take bool) (gone int, err error) {
	pipe := m.Redis.Pipeline()
	records := make([]*redis.StringCmd, len(batch))
	for i, w := range batch {
		records[i] = pipe.HGet(ctx, m.key("t:"+w.id), "msg")
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return 0, err
	}
	var tasks []*AsynqTask
	var ids []any
	for i, w := range batch {
		text, err := records[i].Bytes()
		var t *AsynqTask
		if err == nil {
			if t, err = taskOf(text); err == nil {
				t.ID, t.Queue = w.id, m.Queue // that is what asynq goes by
				if w.due > 0 {
					t.Due = time.Unix(int64(w.due), 0)
				}
				err = m.Check(t.task())
			}
			if err != nil {
				m.Stays(w.id, !take, err)
			}
		}
		if err == nil {
			tasks, ids = append(tasks, t), append(ids, w.id)
		}
	}
	gone = len(tasks)
	if gone > 0 && take {
		held, err := asynqTake.Run(ctx, m.Redis, []string{m.key("pending"), m.key("scheduled"), m.key("retry"), m.key(asynqHeld)}, ids...).Int64Slice()
		if err != nil {
			return 0, err
		}
		kept := tasks[:0]
		for i, t := range tasks {
			if t.taken = held[i] == 1; held[i] != 0 {
				kept = append(kept, t)
			}
		}
		tasks = kept
	}
	stay, err := m.settle(ctx, tasks)
	return gone - stay, err
}

// settle adds tasks that are held, and has asynq forget them. It returns how many stay, because they are refused.
func (m *AsynqMove) settle(ctx context.Context, held []*AsynqTask) (stay int, err error) {
	if len(held) == 0 {
		return 0, nil
	}
	list := make([]*task.Task, len(held))
	for i, t := range held {
		list[i] = t.task()
	}
	refused, failed := m.Add(ctx, list)
	drop, dropped := []string{m.key(asynqHeld)}, []any{}
	back, given := []string{m.key("pending"), m.key("scheduled"), m.key("retry"), m.key(asynqHeld)}, []any{}
	for i, t := range held {
		record := m.key("t:" + t.ID)
		switch why := refused[list[i]]; {
		case why == nil:
			drop, dropped = append(drop, record, cmp.Or(t.Lock, record)), append(dropped, t.ID)
		case t.taken:
			back, given = append(back, record), append(given, t.ID)
		}
	}
	if len(given) > 0 { // first: the next move can tell of those that were added that they are there, but not of these that they are not
		if err := asynqBack.Run(ctx, m.Redis, back, given...).Err(); err != nil {
			return 0, errors.Join(failed, err)
		}
	}
	for i, t := range held {
		if why := refused[list[i]]; why != nil {
			m.Stays(t.ID, !t.taken, why)
		}
	}
	if failed != nil || len(dropped) == 0 {
		return len(refused), failed
	}
	n, err := asynqDrop.Run(ctx, m.Redis, drop, dropped...).Int()
	m.moved += n
	return len(refused), err
}
