package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var (
	moveScript  = store.NewScript("move", WakeLib, "local function enqueue()", source("enqueue"), "end", source("move"))
	movedScript = store.NewScript("moved", source("moved"))
)

// ErrLate reports that [Queue.Move] came after the moment that its caller had named. Nothing was added.
var ErrLate = errors.New("too late to move tasks: another caller may have moved them")

const (
	// MoveWithin is how long after the caller began, by the clock of Redis, [Queue.Move] adds tasks.
	MoveWithin = 30 * time.Second
	// markFor is how long a mark stays while the other store holds the task.
	markFor = 30 * 24 * time.Hour
	// markAfter is how long it stays afterwards. It is longer than MoveWithin, so that a call of Move that was held up on its way
	// comes too late, or still meets the mark; and longer than most failovers of a database, which may bring the tasks back.
	markAfter = 10 * MoveWithin
)

// Moving says how tasks are moved here from another store.
type Moving struct {
	// Began is a moment, by the clock of Redis, before the caller knew that no other caller moves these tasks.
	Began time.Time
	// Marks has a name for each task, which the other store gave it and gives no other: two tasks may have the same ID, one after
	// the other.
	Marks map[*task.Task]string
}

// Move is [Queue.Enqueue] with look for tasks that another store holds too, such as a table of a database. It marks each task that it
// adds, in the same step. A task with a mark is refused, by "moved", even if it has run and is forgotten. A mark stays for 30
// days after the last call that met it, or until five minutes after [Queue.Moved].
//
// More than [MoveWithin] after m.Began Move adds nothing and returns [ErrLate]: the caller may have been stopped meanwhile, for
// however long, and another may have moved the tasks, and called Moved.
func (q *Queue) Move(ctx context.Context, tasks []*task.Task, m Moving) (refused []error, added int, err error) {
	return inParts(tasks, func(part []*task.Task, refused []error) error {
		if err := q.moveBatch(ctx, part, m, refused); err != nil {
			return fmt.Errorf("move: %w", err)
		}
		return nil
	})
}

// moveBatch moves tasks by one call, or by a second one without those that the first one found to be moved.
func (q *Queue) moveBatch(ctx context.Context, tasks []*task.Task, m Moving, refused []error) error {
	at := make([]int, len(tasks)) // the index in refused of each task
	for i := range at {
		at[i] = i
	}
	for len(tasks) > 0 {
		r, err := q.callMove(ctx, tasks, m)
		if err != nil {
			return err
		}
		r.Int() // now
		if r.Err == nil && !r.More() {
			return ErrLate
		}
		r.Int() // added
		moved := make([]bool, len(tasks))
		again := false
		for r.More() {
			i, by, id := int(r.Int()), r.Text(), r.Text()
			if r.Err != nil || i < 0 || i >= len(tasks) {
				break
			}
			if by == "moved" {
				moved[i], again, id = true, true, tasks[i].ID
			}
			refused[at[i]] = q.refusal(ctx, by, id)
		}
		if r.Err != nil || !again {
			return r.Err
		}
		var rest []*task.Task
		var places []int
		for i, t := range tasks {
			if !moved[i] {
				rest, places = append(rest, t), append(places, at[i])
			}
		}
		tasks, at = rest, places
	}
	return nil
}

func (q *Queue) callMove(ctx context.Context, tasks []*task.Task, m Moving) (*store.Reply, error) {
	b := newBatch(&q.keys, tasks, true)
	b.seal, b.by = q.seal, "outbox"
	keys, args := b.request(&q.keys, lookForID)
	for _, t := range tasks {
		keys = append(keys, q.keys.Moved(m.Marks[t]))
	}
	args = append(args, m.Began.Add(MoveWithin).UnixMilli(), markFor.Milliseconds(), len(tasks))
	v, err := moveScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return nil, err
	}
	return store.NewReply(v), nil
}

// Moved lets marks go. Call it when the other store has removed their tasks for good. A mark whose call is lost goes by
// itself, after 30 days.
func (q *Queue) Moved(ctx context.Context, marks []string) error {
	for len(marks) > 0 {
		part := marks[:min(len(marks), MaxBatch)]
		marks = marks[len(part):]
		keys := make([]string, len(part))
		for i, mark := range part {
			keys[i] = q.keys.Moved(mark)
		}
		if _, err := movedScript.Run(ctx, q.rdb, keys, []any{markAfter.Milliseconds()}); err != nil {
			return fmt.Errorf("let the marks of moved tasks go: %w", err)
		}
	}
	return nil
}
