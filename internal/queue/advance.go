package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var advanceScript = store.NewScript("advance", WakeLib, source("advance"))

// Term names a leader's term. A script that only the leader may run compares all three fields.
type Term = task.Term

// Place names a task in a lane's due set.
type Place struct {
	Lane Lane
	ID   string
}

// Drop names a slot's task to remove, if the task still waits for its first run.
type Drop struct {
	Place
	Due    time.Time // the due time with which the slot was pushed
	Behind bool      // do not remove it, but make it [task.Behind]
}

// Push is a slot's task to add to its lane.
type Push struct {
	Task *task.Task
	Due  time.Time // when the task may start; zero: now
}

// Step moves one schedule on, if its last run is still the one that the leader read.
type Step struct {
	Name    string
	Expect  string // the last run as the leader read it
	Becomes string // the new last run
	Note    string // for the history
	Behind  string // the slots that the schedule was behind with, as the leader read them; see [Behind]
	Remains string // the slots that it is behind with afterwards; if equal to Behind, the script does not compare or write
	Drop    []Drop // slots that were missed in an outage: the script removes those that no instance has claimed
	Push    []Push
	Probe   Probe

	// Dropped is set by Advance: how many tasks of Drop it removed, plus how many of Push it did not push. They did not
	// run, so Redis keeps Becomes with that many runs less.
	Dropped int
}

// Probe bounds how many slots of a schedule wait. It names the slot that was due Bound slots ago. While that slot waits
// for its first run, and at least Bound tasks wait in its lane, Advance pushes nothing and notes it in the history.
type Probe struct {
	Bound int // zero: no bound
	ID    string
	Due   time.Time // the due time with which the slot was pushed
}

func (p Probe) String() string {
	if p.Bound == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s %d", p.Bound, p.ID, store.Ms(p.Due))
}

// Advance pushes slots and moves the last run of their schedules on. Only the leader may call it. It returns the clock of
// Redis, how many tasks were dropped in all (each step's Dropped says how many of its schedule), and the indexes of the
// steps that it left out because their schedule had changed since the leader read it.
//
// Advance returns [ErrNotLeader] or [ErrFenced], and does nothing, if the term is over. It splits large batches, so after
// another error the first steps may have been done; to do them again is harmless.
func (q *Queue) Advance(ctx context.Context, term Term, steps []Step) (now time.Time, dropped int, moved []int, err error) {
	for from := 0; from < len(steps); {
		to, size := from, 0
		for to < len(steps) && (to == from || size+stepSize(&steps[to]) <= advanceBatch) {
			size += stepSize(&steps[to])
			to++
		}
		r, err := q.advanceBatch(ctx, term, steps[from:to])
		if err != nil {
			return now, dropped, moved, fmt.Errorf("advance: %w", err)
		}
		now = store.FromMs(r.Int())
		for range r.Int() {
			if i, n := int(r.Int()), int(r.Int()); from+i < to {
				steps[from+i].Dropped = n
				dropped += n
			}
		}
		for _, i := range r.Indexes() {
			moved = append(moved, from+i)
		}
		if r.Err != nil {
			return now, dropped, moved, fmt.Errorf("advance: %w", r.Err)
		}
		from = to
	}
	return now, dropped, moved, nil
}

// advanceBatch bounds what one call pushes: a slot counts one, and a step one. No instance can claim a task while the script
// runs, which takes about 8 µs a slot; so it takes less time than a claim of [MaxBatch] tasks.
const advanceBatch = 400

// PushSize returns how many slots a task counts for in a batch: one, and more if its payload is large.
func PushSize(t *task.Task) int { return 1 + payloadBytes(t)*MaxBatch/batchBytes }

func stepSize(s *Step) int {
	n := 1 + len(s.Drop)
	for i := range s.Push {
		n += PushSize(s.Push[i].Task)
	}
	return n
}

func (q *Queue) advanceBatch(ctx context.Context, term Term, steps []Step) (*store.Reply, error) {
	var lanes laneSet
	body := make([]any, 0, 1+13*len(steps))
	body = append(body, len(steps))
	var buf []byte
	for i := range steps {
		s := &steps[i]
		// Pointers fit into interface values without an allocation.
		body = append(body, &s.Name, &s.Expect, &s.Becomes, &s.Note, &s.Behind, &s.Remains, s.Probe.String(), len(s.Drop))
		for _, d := range s.Drop {
			body = append(body, lanes.number(d.Lane), d.ID, dueMs(d.Due), d.Behind)
		}
		body = append(body, len(s.Push))
		for _, p := range s.Push {
			from := len(buf)
			buf = encodeSealed(buf, p.Task, q.seal)
			body = append(body, lanes.number(LaneOf(p.Task)), &p.Task.ID, dueArg(p.Due, 0), buf[from:len(buf):len(buf)])
		}
	}
	k := &q.keys
	keys := []string{k.Instances, k.Members, k.Leader, k.Last, k.Tasks, k.Lanes, k.Meta, k.Watch, k.History, k.Behind}
	args := []any{term.Instance, term.Gen, term.Epoch, k.Wake, q.caps.history()}
	keys, args = lanes.declare(k, keys, args)
	keys = append(keys, k.Events)
	v, err := advanceScript.Run(ctx, q.rdb, keys, append(args, body...))
	if err != nil {
		return nil, err
	}
	return store.NewReply(v), nil
}
