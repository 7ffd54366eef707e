package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

var restockScript = store.NewScript("restock", store.Careful, WakeLib, source("lib_held"), source("lib_gens"), source("restock"))

// lostMark begins a field of meta that names what was set aside and is still to be found again: "lost:<unix ms>:<key>".
const lostMark = "lost:"

// restockBatch is how many tasks one call looks at.
const restockBatch = 100

// errDueLost is what a task died of whose record does not say when it was due.
var errDueLost = errors.New("something else than onbeat wrote over the key that said when it is due: retry it if it is to run")

// FindLost finds again what lay in keys that [Queue.Mend] has set aside and is known by other keys: which lanes there are,
// and the tasks of a lane. A slot is due at its time. A task of a caller that had not run yet is dead, with the reason,
// because only that key said when it was due. FindLost reads all records, so it may take seconds; if it ends early, or
// two look at once, the next call goes on. It returns how many tasks it put back. The leader calls it now and then.
func (q *Queue) FindLost(ctx context.Context) (found int, err error) {
	meta, err := q.rdb.HGetAll(ctx, q.keys.Meta).Result()
	if err != nil {
		return 0, fmt.Errorf("find what was lost: %w", store.Classify(err))
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
		return found, fmt.Errorf("find what was lost: %w", err)
	}
	if err := q.rdb.HDel(ctx, q.keys.Meta, marks...).Err(); err != nil { // not one that was made meanwhile: each has its time
		return found, fmt.Errorf("find what was lost: %w", store.Classify(err))
	}
	return found, nil
}

// restockAll goes through all records once.
func (q *Queue) restockAll(ctx context.Context, lost map[string]bool) (found int, err error) {
	batches := map[Lane][]*task.Task{}
	flush := func(l Lane) error {
		n, err := q.restock(ctx, l, batches[l])
		found += n
		batches[l] = batches[l][:0]
		return err
	}
	for cursor := uint64(0); ; {
		kv, next, err := q.rdb.HScan(ctx, q.keys.Tasks, cursor, "", claimRecords).Result()
		if err != nil {
			return found, store.Classify(err)
		}
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

// errMoved: an instance joined meanwhile.
var errMoved = errors.New("an instance joined meanwhile: to be tried again")

// dueAgain is when a task is due of which only the record is left; zero if that does not say.
func dueAgain(t *task.Task) time.Time {
	if t.Due.IsZero() {
		return t.Slot
	}
	return t.Due
}
