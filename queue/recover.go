package queue

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/task"
)

var recoverScript = NewScript("recover", source("lib_wake"), source("lib_held"), source("recover"))

// Recovery is what becomes of one task of a dead generation: due again, or dead.
type Recovery struct {
	Claim  Claim
	Lane   Lane
	Dead   bool
	Record []byte
	Note   string
}

// Recover moves tasks that a dead generation was running, each if it still lies there as it was read. It returns how
// many moved and how many are left. It returns [ErrAlive], and does nothing, unless the generation was declared dead.
// With no recoveries it forgets a generation that holds nothing.
func (q *Queue) Recover(ctx context.Context, gen int64, list []Recovery) (moved, left int, err error) {
	for from := 0; from == 0 || from < len(list); from += MaxBatch {
		part := list[from:min(from+MaxBatch, len(list))]
		var lanes laneSet
		body := []any{len(part)}
		for i := range part {
			r := &part[i]
			lane := 0
			if !r.Dead {
				lane = lanes.number(r.Lane)
			}
			body = append(body, r.Claim.Task.ID, r.Claim.Value, lane, Ms(r.Claim.Task.Due), r.Record, r.Note)
		}
		k := &q.keys
		keys := []string{k.Orphans, k.Running(gen), k.Tasks, k.Dead, k.Active, k.Held, k.History, k.Meta, k.Watch, k.Lanes}
		args := []any{gen, k.Wake, q.caps.History}
		keys, args = lanes.declare(k, keys, args)
		v, err := recoverScript.Run(ctx, q.rdb, keys, append(args, body...))
		if err != nil {
			return moved, left, fmt.Errorf("recover generation %d: %w", gen, err)
		}
		r := newReply(v)
		r.int()
		moved += int(r.int())
		left = int(r.int())
		if r.err != nil {
			return moved, left, fmt.Errorf("recover generation %d: %w", gen, r.err)
		}
	}
	return moved, left, nil
}

// Rewrite is the record of a task that stays, with its first due time written down because its score may change.
func Rewrite(t *task.Task) []byte { return task.Encode(nil, t) }
