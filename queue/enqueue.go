package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/task"
)

var enqueueScript = NewScript("enqueue", source("lib_wake"), source("enqueue"))

// ErrDuplicate is matched by what [Refused] says of a task that was not added.
var ErrDuplicate = errors.New("duplicate")

// Refused is why one task of a batch was not added. It matches [ErrDuplicate].
type Refused struct {
	// By is "id" (a task of this ID is known) or "unique" (the unique key is taken).
	By string
	// ID is the task that stands in its place.
	ID string
}

func (r *Refused) Error() string {
	if r.By == "unique" {
		return fmt.Sprintf("duplicate: its unique key is held by task %q", r.ID)
	}
	return fmt.Sprintf("duplicate: a task with the ID %q exists", r.ID)
}

// Is matches [ErrDuplicate].
func (r *Refused) Is(target error) bool { return target == ErrDuplicate }

// batchBytes bounds what one call sends: a long script call keeps everybody else waiting.
const batchBytes = 4 << 20

// Enqueue adds tasks, each of which must have an ID. With look, an ID that is already known is refused; without it,
// the caller vouches that the IDs are new. The result has an entry for each task: nil, or a [*Refused].
//
// Batches over [MaxBatch] are split, and each part is added whole or not at all. If a call fails, added says how many
// tasks were dealt with before it. After [ErrUnreachable] it is open whether the next part was added; enqueueing it
// again with look, while its tasks are known, tells.
func (q *Queue) Enqueue(ctx context.Context, tasks []*task.Task, look bool) (refused []error, added int, err error) {
	refused = make([]error, len(tasks))
	for from := 0; from < len(tasks); {
		to, size := from, 0
		for to < len(tasks) && to-from < MaxBatch && (to == from || size+len(tasks[to].Payload) <= batchBytes) {
			size += len(tasks[to].Payload)
			to++
		}
		if err := q.enqueueBatch(ctx, tasks[from:to], look, refused[from:to]); err != nil {
			return refused, from, fmt.Errorf("enqueue: %w", err)
		}
		from = to
	}
	return refused, len(tasks), nil
}

// laneSet numbers the lanes that one call uses, from 1, in the order in which they first appear.
type laneSet struct {
	list    []Lane
	numbers map[Lane]int
}

func (s *laneSet) number(l Lane) int {
	n, ok := s.numbers[l]
	if !ok {
		if s.numbers == nil {
			s.numbers = make(map[Lane]int, 4)
		}
		s.list = append(s.list, l)
		n = len(s.list)
		s.numbers[l] = n
	}
	return n
}

// declare appends the due sets to keys and the names to args, behind their count.
func (s *laneSet) declare(k *Keys, keys []string, args []any) ([]string, []any) {
	args = append(args, len(s.list))
	for _, l := range s.list {
		keys = append(keys, k.Due(l))
		args = append(args, l.String())
	}
	return keys, args
}

func (q *Queue) enqueueBatch(ctx context.Context, tasks []*task.Task, look bool, refused []error) error {
	var lanes laneSet
	var uniques []string
	var windows []any
	body := make([]any, 0, 1+5*len(tasks))
	body = append(body, len(tasks))
	var buf []byte
	for _, t := range tasks {
		unique := 0
		if t.UniqueKey != "" {
			uniques = append(uniques, q.keys.Unique(t.UniqueKey))
			window := t.UniqueFor
			if window <= 0 {
				window = task.DefaultUniqueFor
			}
			windows = append(windows, max(window.Milliseconds(), 1))
			unique = len(uniques)
		}
		from := len(buf)
		buf = encodeNew(buf, t)
		body = append(body, t.ID, lanes.number(LaneOf(t)), dueArg(t.Due, t.Delay), buf[from:len(buf):len(buf)], unique)
	}
	k := &q.keys
	keys := []string{k.Tasks, k.Lanes, k.Meta, k.Watch}
	flag := "0"
	if look {
		flag = "1"
	}
	args := make([]any, 0, len(body)+len(lanes.list)+8)
	args = append(args, k.Wake, flag)
	keys, args = lanes.declare(k, keys, args)
	keys = append(keys, uniques...)
	args = append(append(args, body...), windows...)

	v, err := enqueueScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return err
	}
	r := newReply(v)
	r.int() // now
	r.int() // added
	for r.more() {
		i, by, id := r.int(), r.string(), r.string()
		if r.err == nil && int(i) < len(refused) {
			refused[i] = &Refused{By: by, ID: id}
		}
	}
	return r.err
}

// encodeNew is the record of a task that has not run: its due time is its score, so the record leaves it out.
func encodeNew(b []byte, t *task.Task) []byte {
	due := t.Due
	t.Due = time.Time{}
	b = task.Encode(b, t)
	t.Due = due
	return b
}
