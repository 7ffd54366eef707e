package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

var advanceScript = store.NewScript("advance", WakeLib, source("advance"))

// Term names a term of leadership. Scripts that only the leader may run compare all of it.
type Term struct {
	Instance string
	Gen      int64
	Epoch    int64
}

// Place is where a task lies: its ID in a lane's due set.
type Place struct {
	Lane Lane
	ID   string
}

// Drop is a slot's task to take out, if it still waits for its first run.
type Drop struct {
	Place
	Due    time.Time // as it was pushed
	Behind bool      // it stays, but from now on is [task.Behind]
}

// Push is a slot's task to add.
type Push struct {
	Task *task.Task
	Due  time.Time // when it may start; zero: now
}

// Step moves one schedule on, if its last run is still what was read.
type Step struct {
	Name    string
	Expect  string // last run as it was read
	Becomes string
	Note    string // for the history
	Behind  string // what it was behind with, as it was read
	Remains string // what it is behind with then; if that is the same, Redis does not look
	Drop    []Drop // slots missed in an outage: they leave unless they were claimed
	Push    []Push
	Probe   Probe

	// Dropped is set by Advance: how many of Drop left, and of Push were not pushed. They did not run, so Becomes lies in
	// Redis with as many runs less.
	Dropped int
}

// Probe bounds what waits of a schedule. It names the slot that was due Bound slots ago: while that one waits for its first
// run, in a lane in which as many wait, nothing is pushed, and the history says so.
type Probe struct {
	Bound int // zero: there is no bound
	ID    string
	Due   time.Time // as it was pushed
}

func (p Probe) String() string {
	if p.Bound == 0 {
		return ""
	}
	return fmt.Sprintf("%d %s %d", p.Bound, p.ID, store.Ms(p.Due))
}

// Advance pushes slots. It returns the clock of Redis, how many tasks were dropped, of which the steps say whose they
// were, and the indexes of the steps that were not done because their schedule had moved.
//
// It returns [ErrNotLeader] or [ErrFenced], and does nothing, if the term is over. Batches are split, so after another
// error the first steps may have been done; doing them again changes nothing.
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

// advanceBatch is about how many slots one call pushes: while it runs, nobody can claim what is due.
const advanceBatch = 200

// PushSize is as how many slots one counts in a step, for its payload: one with a small payload is one.
func PushSize(t *task.Task) int { return 1 + len(t.Payload)*MaxBatch/batchBytes }

func stepSize(s *Step) int {
	n := 1 + len(s.Drop)
	for i := range s.Push {
		n += PushSize(s.Push[i].Task)
	}
	return n
}

func (q *Queue) advanceBatch(ctx context.Context, term Term, steps []Step) (*store.Reply, error) {
	var lanes laneSet
	body := make([]any, 0, 16*len(steps))
	body = append(body, len(steps))
	var buf []byte
	for i := range steps {
		s := &steps[i]
		body = append(body, s.Name, s.Expect, s.Becomes, s.Note, s.Behind, s.Remains, s.Probe.String(), len(s.Drop))
		for _, d := range s.Drop {
			body = append(body, lanes.number(d.Lane), d.ID, dueMs(d.Due), d.Behind)
		}
		body = append(body, len(s.Push))
		for _, p := range s.Push {
			from := len(buf)
			buf = task.Encode(buf, p.Task)
			body = append(body, lanes.number(LaneOf(p.Task)), p.Task.ID, dueArg(p.Due, 0), buf[from:len(buf):len(buf)])
		}
	}
	k := &q.keys
	keys := []string{k.Instances, k.Members, k.Leader, k.Last, k.Tasks, k.Lanes, k.Meta, k.Watch, k.History, k.Behind}
	args := []any{term.Instance, term.Gen, term.Epoch, k.Wake, q.caps.History}
	keys, args = lanes.declare(k, keys, args)
	keys = append(keys, k.Events)
	v, err := advanceScript.Run(ctx, q.rdb, keys, append(args, body...))
	if err != nil {
		return nil, err
	}
	return store.NewReply(v), nil
}
