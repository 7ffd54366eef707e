package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

var recoverScript = store.NewScript("recover", store.Careful, WakeLib, source("lib_held"), source("lib_cancel"), source("lib_history"), source("recover"))

// Recovery is what becomes of one task of a dead generation: due again, or dead.
type Recovery struct {
	Claim  Claim
	Lane   Lane
	Dead   bool
	Record []byte
	Note   string

	// Asked is what becomes of it instead of being due again, if somebody asked for it to be cancelled. Nil: it stays as
	// it is, and counts as left.
	Asked *Recovery
}

// Recover moves tasks that a dead generation was running, each if it still lies there as it was read. It returns how
// many moved and how many are left. It returns [ErrAlive], and does nothing, unless the generation was declared dead.
// With no recoveries it forgets a generation that holds nothing.
func (q *Queue) Recover(ctx context.Context, gen int64, list []Recovery) (moved, left int, err error) {
	for first := true; first || len(list) > 0; first = false {
		part := list[:min(MaxBatch, len(list))]
		list = slices.Clip(list[len(part):])
		r, err := q.recoverBatch(ctx, gen, part)
		if err != nil {
			return moved, left, fmt.Errorf("recover generation %d: %w", gen, err)
		}
		r.Int()
		moved += int(r.Int())
		left = int(r.Int())
		for _, i := range r.Indexes() {
			if asked := part[i].Asked; asked != nil {
				list = append(list, *asked)
			}
		}
		if r.Err != nil {
			return moved, left, fmt.Errorf("recover generation %d: %w", gen, r.Err)
		}
	}
	return moved, left, nil
}

func (q *Queue) recoverBatch(ctx context.Context, gen int64, part []Recovery) (*store.Reply, error) {
	var lanes laneSet
	body := []any{len(part)}
	for i := range part {
		r := &part[i]
		lane := 0
		if !r.Dead {
			lane = lanes.number(r.Lane)
		}
		body = append(body, r.Claim.Task.ID, r.Claim.Value, lane, store.Ms(Again(r.Claim.Task.Due)), r.Record, r.Note)
	}
	if err := q.declareWaiters(ctx, &lanes, part); err != nil {
		return nil, err
	}
	k := &q.keys
	keys := []string{k.Orphans, k.Running(gen), k.Tasks, k.Dead, k.Active, k.Held, k.History, k.Meta, k.Watch, k.Lanes, k.Cancel}
	args := []any{gen, k.Wake, q.caps.History}
	keys, args = lanes.declare(k, keys, args)
	v, err := recoverScript.Run(ctx, q.rdb, keys, append(args, body...))
	if err != nil {
		return nil, err
	}
	return store.NewReply(v), nil
}

// declareWaiters adds every lane if a task of a key is among those to be recovered, or claims whose tasks are gone: the
// next of their keys may lie in any.
func (q *Queue) declareWaiters(ctx context.Context, lanes *laneSet, part []Recovery) error {
	keyed := func(r Recovery) bool { return strings.Contains(r.Claim.Value, "\x1fk:") }
	if len(part) > 0 && !slices.ContainsFunc(part, keyed) {
		return nil
	}
	all, _, err := q.Lanes(ctx)
	if err != nil || len(all) > MaxBatch { // so many are left to tidy.lua
		return err
	}
	for _, l := range all {
		lanes.number(l)
	}
	return nil
}

// Again is when a task that has begun, and comes back for another run without a delay, is due: a millisecond after its
// first due time. It keeps its place in line, and no policy for slots that nobody began takes it out, because those are
// told by the due time they were pushed with ([Drop]).
func Again(due time.Time) time.Time { return due.Add(time.Millisecond) }

// Rewrite is the record of a task that stays, with its first due time written down because its score may change.
func Rewrite(t *task.Task) []byte { return task.Encode(nil, t) }
