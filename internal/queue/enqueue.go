package queue

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

var enqueueScript = store.NewScript("enqueue", WakeLib, source("enqueue"))

// batchBytes bounds the payloads that one call sends. Every other client waits while a script runs.
const batchBytes = 4 << 20

// Enqueue adds tasks, each of which must have an ID. With look it refuses an ID that exists; without look the caller
// guarantees that the IDs are new. Refused has an entry for each task: nil if the task was added; a [*task.Refused]; or a
// [*task.FieldError] if the task needs a new lane and 2,000 lanes are in use.
//
// Enqueue splits batches over [MaxBatch], and over 4 MiB of payload. It adds each part whole or not at all. If a call
// fails, added is how many tasks the calls before it handled. After [task.ErrUnreachable] the next part may or may not
// have been added. The caller can enqueue it again with look: tasks that were added are refused as long as they exist.
func (q *Queue) Enqueue(ctx context.Context, tasks []*task.Task, look bool) (refused []error, added int, err error) {
	if look {
		return q.enqueue(ctx, tasks, lookForID)
	}
	return q.enqueue(ctx, tasks, lookNot)
}

// EnqueueAgain is [Queue.Enqueue] with look, for tasks that may run once more. Each replaces the task that is dead or kept under its
// ID, and is not refused for a unique key that its own ID holds: the window begins anew. All that is one step. A task that waits or
// runs under the ID refuses the new one, and keeps its unique key as it is.
func (q *Queue) EnqueueAgain(ctx context.Context, tasks []*task.Task) (refused []error, added int, err error) {
	return q.enqueue(ctx, tasks, lookAgain)
}

// How enqueue.lua looks for tasks with the IDs that it adds.
const (
	lookNot   = "0"
	lookForID = "1"
	lookAgain = "2"
)

func (q *Queue) enqueue(ctx context.Context, tasks []*task.Task, look string) (refused []error, added int, err error) {
	return inParts(tasks, func(part []*task.Task, refused []error) error {
		if err := q.enqueueBatch(ctx, part, look, refused); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
		return nil
	})
}

// inParts calls add for parts of the tasks, each no larger than one call may be, until add fails.
func inParts(tasks []*task.Task, add func(part []*task.Task, refused []error) error) (refused []error, added int, err error) {
	refused = make([]error, len(tasks))
	for from := 0; from < len(tasks); {
		to, size := from, 0
		for to < len(tasks) && to-from < MaxBatch && (to == from || size+payloadBytes(tasks[to]) <= batchBytes) {
			size += payloadBytes(tasks[to])
			to++
		}
		if err := add(tasks[from:to], refused[from:to]); err != nil {
			return refused, from, err
		}
		from = to
	}
	return refused, len(tasks), nil
}

// payloadBytes is how large the payload of a task is. That of a schedule whose key is not here is only sealed.
func payloadBytes(t *task.Task) int {
	if t.Sealed != nil {
		return t.Sealed.Len()
	}
	return len(t.Payload)
}

func (q *Queue) enqueueBatch(ctx context.Context, tasks []*task.Task, look string, refused []error) error {
	b := newBatch(&q.keys, tasks, look != lookNot)
	b.seal, b.by = q.seal, wording.Cut(Actor(ctx), longestMaker)
	keys, args := b.request(&q.keys, look)
	v, err := enqueueScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return err
	}
	r := store.NewReply(v)
	r.Int() // now
	r.Int() // added
	for r.More() {
		i, by, id := r.Int(), r.Text(), r.Text()
		if r.Err == nil && i >= 0 && int(i) < len(refused) {
			refused[b.index(int(i))] = q.refusal(ctx, by, id)
		}
	}
	return r.Err
}

func (q *Queue) refusal(ctx context.Context, by, id string) error {
	if by != "lane" {
		return &task.Refused{By: by, ID: id}
	}
	return &task.FieldError{
		Field: "queue", Reason: fmt.Sprintf("would add a lane (queue, priority and type: %s), and the limit of 2,000 lanes is reached%s", id, q.makers.most(ctx, q)),
		Hint: "use fewer queues and types, because every instance looks at each one; a key (--key) keeps tasks from running at the same time",
	}
}
