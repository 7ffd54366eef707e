package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var restockScript = store.NewScript("restock", store.Careful, WakeLib, source("lib_held"), source("lib_gens"), source("restock"))

// lostMark begins a field of Meta, "lost:<unix ms>:<key>". It names a key that was set aside and whose content FindLost
// has not found again yet.
const lostMark = "lost:"

// restockBatch is how many tasks one call puts back.
const restockBatch = 100

// errDueLost is the last error of a task that died because its record does not say when it was due.
var errDueLost = errors.New("a program other than onbeat overwrote the key that had its due time: retry the task if it should run")

// FindLost rebuilds the content of keys that [Queue.Mend] has set aside, as far as the task records know it: the list of
// lanes, and the tasks of a lane. It returns how many tasks it put back. The leader calls it now and then.
//
// A slot is due again at its time. A caller's task that had not run yet becomes dead, with the reason as its error,
// because only the lost key said when it was due. FindLost reads all records, so it may take seconds. It may end early, and
// two may run at once: the next call goes on.
func (q *Queue) FindLost(ctx context.Context) (found int, err error) {
	meta, err := q.rdb.HGetAll(ctx, q.keys.Meta).Result()
	if err != nil {
		return 0, fmt.Errorf("find lost tasks: %w", store.Classify(err))
	}
	var marks []string
	lost := map[string]bool{} // the lanes; "" for the list of them
	for field := range meta {
		if rest, ok := strings.CutPrefix(field, lostMark); ok {
			_, what, _ := strings.Cut(rest, ":")
			lost[strings.TrimPrefix(strings.TrimPrefix(what, "lanes"), "due:")] = true
			marks = append(marks, field)
		}
	}
	if len(lost) == 0 {
		return 0, nil
	}
	found, err = q.restockAll(ctx, lost)
	if err != nil {
		return found, fmt.Errorf("find lost tasks: %w", err)
	}
	// A mark that Mend made meanwhile stays: each mark has its own time.
	if err := q.rdb.HDel(ctx, q.keys.Meta, marks...).Err(); err != nil {
		return found, fmt.Errorf("find lost tasks: %w", store.Classify(err))
	}
	return found, nil
}

// restockAll goes through all records once, and puts back the tasks of the lanes in lost. If lost has "", it adds every
// lane that a record names to the list of lanes.
func (q *Queue) restockAll(ctx context.Context, lost map[string]bool) (found int, err error) {
	batches := map[Lane][]*task.Task{}
	flush := func(l Lane) error {
		n, err := q.restock(ctx, l, batches[l])
		found += n
		batches[l] = batches[l][:0]
		return err
	}
	part := firstScan
	for cursor := uint64(0); ; {
		kv, next, err := q.rdb.HScan(ctx, q.keys.Tasks, cursor, "", int64(part)).Result()
		if err != nil {
			return found, store.Classify(err)
		}
		part.took(kv)
		for i := 0; i+1 < len(kv); i += 2 {
			t := &task.Task{ID: kv[i]}
			if task.Decode(kv[i+1], t) != nil {
				continue
			}
			l := LaneOf(t)
			list, known := batches[l]
			switch {
			case lost[l.String()]:
				batches[l] = append(list, t)
			case lost[""] && !known:
				batches[l] = nil
			}
			if len(batches[l]) == restockBatch {
				if err := flush(l); err != nil {
					return found, err
				}
			}
		}
		if cursor = next; cursor == 0 {
			break
		}
	}
	for l := range batches {
		if err := flush(l); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (q *Queue) restock(ctx context.Context, l Lane, tasks []*task.Task) (int, error) {
	k := &q.keys
	keys := []string{k.Tasks, k.Dead, k.Done, k.Held, k.Watch, k.Meta, k.Lanes, k.Events, k.Members, k.Orphans, k.Due(l)}
	keys, args, err := q.declareRuns(ctx, keys, []any{k.Wake, q.caps.Events, l.String()})
	if err != nil {
		return 0, err
	}
	args = append(args, len(tasks))
	for _, t := range tasks {
		due, record := any(""), []byte(nil)
		switch at := dueAgain(t); {
		case !at.IsZero():
			due = store.Ms(at)
		default:
			t.Fail(task.Failure{At: time.Now().UTC(), Attempt: t.Attempts, Error: errDueLost.Error()})
			record = Rewrite(t)
		}
		args = append(args, t.ID, t.Key, due, record)
	}
	v, err := restockScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return 0, err
	}
	r := store.NewReply(v)
	again := r.Int()
	if again < 0 {
		return 0, errMoved
	}
	return int(again + r.Int()), r.Err
}

// errMoved: an instance joined meanwhile, so the script could not look at all runs.
var errMoved = errors.New("an instance joined meanwhile: the leader tries again")

// dueAgain returns when a task is due of which only the record is left, or zero if the record does not say.
func dueAgain(t *task.Task) time.Time {
	if t.Due.IsZero() {
		return t.Slot
	}
	return t.Due
}
