package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var recoverScript = store.NewScript("recover", store.Careful, WakeLib, source("lib_held"), source("lib_cancel"), source("lib_history"), source("recover"))

// Recovery is the outcome for one task that a dead generation was running: due again, or dead.
type Recovery struct {
	Claim  Claim
	Lane   Lane
	Dead   bool
	Record []byte
	Note   string

	// Asked replaces this recovery if the task would be due again but a caller asked to cancel it. Nil: the task stays
	// claimed, and counts as left.
	Asked *Recovery
}

// Recover takes back tasks that a dead generation was running, each if its claim is still as the caller read it. It
// returns how many tasks moved and how many claims the generation has left. With an empty list it forgets a generation
// that holds no claims.
//
// Recover returns [ErrAlive], and does nothing, if the generation was not declared dead.
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
	args := []any{gen, k.Wake, q.caps.history()}
	keys, args = lanes.declare(k, keys, args)
	if q.Notes().Every {
		keys = append(keys, k.Runs)
	}
	v, err := recoverScript.Run(ctx, q.rdb, keys, append(args, body...))
	if err != nil {
		return nil, err
	}
	return store.NewReply(v), nil
}

// declareWaiters adds every lane if a claim to recover has a key, or if the list is empty: then the script removes claims
// whose tasks are gone, and they may have keys too. The next task of a key may lie in any lane.
func (q *Queue) declareWaiters(ctx context.Context, lanes *laneSet, part []Recovery) error {
	keyed := func(r Recovery) bool { return strings.Contains(r.Claim.Value, "\x1fk:") }
	if len(part) > 0 && !slices.ContainsFunc(part, keyed) {
		return nil
	}
	all, _, err := q.Lanes(ctx)
	if err != nil || len(all) > MaxBatch { // with so many lanes, tidy.lua finds the next task
		return err
	}
	for _, l := range all {
		lanes.number(l)
	}
	return nil
}

// Again returns the due time of a task that has begun and comes back without a delay: a millisecond after its first due
// time. So the task keeps its place in line. And no policy for slots that never began removes it, because such a policy
// names a slot by the due time with which it was pushed ([Drop]).
func Again(due time.Time) time.Time { return due.Add(time.Millisecond) }

// Rewrite returns the record of a task that runs again or stays. It includes the first due time, because the score may
// change.
func Rewrite(t *task.Task) []byte { return task.Encode(nil, t) }
