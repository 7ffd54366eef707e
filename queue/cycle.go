package queue

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

var cycleScript = store.NewScript("cycle", WakeLib, source("lib_held"), source("lib_cancel"), source("cycle"), source("cycle_settle"),
	source("cycle_claim")).Claiming()

// MaxBatch is the most tasks one call settles or claims. A caller with more makes more calls.
const MaxBatch = 1000

// Outcome is what became of a run.
type Outcome uint8

// The outcomes, in the order in which cycle.lua takes them.
const (
	Finished Outcome = iota // done, and leaves
	Kept                    // done, and stays visible for Keep
	Moved                   // due again at Due: a retry with a new record, or handed back with none
	Died                    // dead, with a new record
	outcomes
)

// Settlement says what became of one run. ID and Fence name the claim; the rest depends on Outcome.
type Settlement struct {
	ID      string
	Fence   int64
	Outcome Outcome
	Keep    time.Duration // Kept
	Lane    Lane          // Moved
	Delay   time.Duration // Moved, from the clock of Redis
	Due     time.Time     // Moved, if not zero, instead of Delay
	Record  []byte        // Kept, Moved (nil leaves the record as it is), Died
	Note    string        // for the history, if the task is a slot of a schedule

	Task  *task.Task // Moved: whose run it was, for a caller that is told to cancel it. It is not sent.
	Tried bool       // an earlier call may have carried it. It is not sent.
}

// LaneClaim is a lane in the order a consumer reads them.
type LaneClaim struct {
	Lane  Lane
	Group int // lanes with the same number, next to each other, share what is claimed
	Limit int // most of this type to run at once over all instances; 0: no limit; negative: not ours to claim
}

// CycleRequest is one round trip of a consumer.
type CycleRequest struct {
	Instance string
	Release  string // for the history
	Gen      int64
	Seq      int64 // larger than in every earlier call of this generation
	Want     int   // most tasks to claim, at most MaxBatch
	Lanes    []LaneClaim
	Settle   []Settlement // at most MaxBatch
	Reads    string       // a name for the lanes it reads: those who have the same one watch for each other
	LanesVer int64        // if the list of lanes has another version, nothing is claimed; 0 claims all the same
	Owed     []string     // keys that the reply to an earlier one named
}

// CycleReply is what a cycle returned.
type CycleReply struct {
	Now      time.Time // by the clock of Redis, in microseconds
	NextDue  time.Time // of the lanes that may be claimed; zero if nothing waits
	MayClaim bool      // by the leader's rule; if not, wait to be woken
	Watching bool      // this instance is to look again at NextDue; if not, another does
	LeftDue  bool      // due work was left behind, or not looked for because the lanes are others than LanesVer asked
	LanesVer int64
	Void     []int // indexes of settlements that changed nothing: the claim was not held any more
	Skipped  int   // slots that left because of their overlap policy
	Refused  []int // indexes of settlements that would have moved what somebody asked to cancel: settle it as cancelled
	// Owed are keys that have room, and tasks waiting for them in lanes that the request did not name: read the lanes
	// again, and ask again with these keys.
	Owed      []string
	Claimed   []*task.Task
	Malformed []Malformed
}

// Malformed is a claimed task whose record cannot be read: written by a much newer release, or damaged.
type Malformed struct {
	ID     string
	Fence  int64
	Lane   Lane
	Record string
	Err    error
}

// Cycle settles runs that ended and claims due tasks in one step. It is sent at most once. After an error that leaves
// the outcome open ([store.ErrUnreachable]), or [ErrStale], call [Queue.Claims] to learn what this generation holds; settling
// twice is harmless.
//
// It returns [ErrFenced], and does nothing, if the instance's lease ran out.
func (q *Queue) Cycle(ctx context.Context, r *CycleRequest) (*CycleReply, error) {
	if r.Want > MaxBatch || len(r.Settle) > MaxBatch {
		return nil, fmt.Errorf("cycle: %d to claim and %d to settle, the limit is %d", r.Want, len(r.Settle), MaxBatch)
	}
	k := &q.keys
	keys := make([]string, 0, 15+len(r.Lanes))
	keys = append(keys, k.Instances, k.Members, k.Leader, k.Meta, k.Watch, k.Tasks, k.Running(r.Gen), k.Done, k.Dead,
		k.History, k.Active, k.Held, k.Cancel, k.Lanes, k.Events)
	numbers := make(map[Lane]int, len(r.Lanes))
	args := make([]any, 0, 32+3*len(r.Lanes)+5*len(r.Settle))
	args = append(args, r.Instance, r.Gen, r.Seq, r.Want, q.caps.History, q.caps.Dead, q.caps.Done, k.Wake, r.Reads,
		r.LanesVer, strings.Join(r.Owed, keySeparator), r.Release, len(r.Lanes))
	for i, l := range r.Lanes {
		keys = append(keys, k.Due(l.Lane))
		numbers[l.Lane] = i + 1
		args = append(args, l.Group, l.Limit, l.Lane.String())
	}
	order, args, err := appendSettlements(args, r.Settle, numbers)
	if err != nil {
		return nil, err
	}
	v, err := cycleScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		q.lagging.Store(true)
		return nil, fmt.Errorf("cycle: %w", err)
	}
	out, err := decodeCycle(store.NewReply(v), r, order)
	if err == nil {
		q.noteCaughtUp(r, out)
	}
	return out, err
}

// appendSettlements writes settlements grouped by outcome, as cycle.lua reads them, and returns that order.
func appendSettlements(args []any, settle []Settlement, lanes map[Lane]int) ([]int, []any, error) {
	order := make([]int, 0, len(settle))
	var counts [outcomes]int
	for o := range outcomes {
		for i := range settle {
			if settle[i].Outcome == o {
				order = append(order, i)
				counts[o]++
			}
		}
	}
	args = append(args, len(order))
	if len(order) == 0 {
		return nil, args, nil
	}
	for _, n := range counts {
		args = append(args, n)
	}
	for _, i := range order {
		args = append(args, &settle[i].ID) // a pointer fits into an interface as it is: nothing is allocated
	}
	args = appendFences(args, settle, order)
	at := counts[Finished]
	for _, o := range []Outcome{Kept, Moved, Died} {
		for _, i := range order[at : at+counts[o]] {
			s := &settle[i]
			switch o {
			case Kept:
				args = append(args, max(s.Keep.Milliseconds(), 1), s.Record)
			case Moved:
				lane, ok := lanes[s.Lane]
				if !ok {
					return nil, nil, fmt.Errorf("cycle: settle %s: lane %s is not in the request", s.ID, s.Lane)
				}
				args = append(args, lane, dueArg(s.Due, s.Delay), s.Record)
			case Died:
				args = append(args, s.Record)
			}
		}
		at += counts[o]
	}
	notes := len(args)
	args = append(args, 0)
	n := 0
	for place, i := range order {
		if settle[i].Note != "" {
			line, more, _ := strings.Cut(settle[i].Note, "\t")
			args = append(args, place+1, line, more)
			n++
		}
	}
	args[notes] = n
	return order, args, nil
}

// appendFences writes the fences of what is settled, each with how many that follow each other have it: tasks of one
// claim mostly end together.
func appendFences(args []any, settle []Settlement, order []int) []any {
	at, runs := len(args), 0
	args = append(args, 0)
	for from := 0; from < len(order); runs++ {
		to := from + 1
		for to < len(order) && settle[order[to]].Fence == settle[order[from]].Fence {
			to++
		}
		args = append(args, settle[order[from]].Fence, to-from)
		from = to
	}
	args[at] = runs
	return args
}

func decodeCycle(r *store.Reply, req *CycleRequest, order []int) (*CycleReply, error) {
	out := &CycleReply{Now: time.UnixMicro(r.Int()).UTC()}
	next, flags := r.Int(), r.Int()
	if next >= 0 {
		out.NextDue = time.UnixMilli(next).UTC()
	}
	out.MayClaim, out.Watching, out.LeftDue = flags&1 != 0, flags&2 != 0, flags&4 != 0
	out.LanesVer = r.Int()
	fence := r.Int()
	out.Void = indexes(r.Text(), order)
	out.Skipped = int(r.Int())
	out.Refused = indexes(r.Text(), order)
	if owed := r.Text(); owed != "" {
		out.Owed = strings.Split(owed, keySeparator)
	}
	for r.More() {
		number := r.Int()
		ids, dues, lengths, records := r.Text(), r.Text(), r.Text(), r.Text()
		if r.Err != nil || number < 1 || int(number) > len(req.Lanes) {
			break
		}
		out.decodeLane(req, req.Lanes[number-1].Lane, fence, ids, dues, lengths, records)
	}
	if r.Err != nil {
		return nil, fmt.Errorf("cycle: %w", r.Err)
	}
	return out, nil
}

// keySeparator stands between keys, which may not contain it.
const keySeparator = "\x1f"

// indexes are those of settlements that a script named by their places in the order in which it got them.
func indexes(places string, order []int) (list []int) {
	if places == "" {
		return nil
	}
	for s := range strings.SplitSeq(places, ",") {
		if i, err := strconv.Atoi(s); err == nil && i >= 0 && i < len(order) {
			list = append(list, order[i])
		}
	}
	return list
}

// decodeLane cuts the four joined strings of a lane into tasks. All tasks of a lane share one allocation.
func (c *CycleReply) decodeLane(req *CycleRequest, lane Lane, fence int64, ids, dues, lengths, records string) {
	n := strings.Count(ids, "\n") + 1
	tasks := make([]task.Task, n)
	if c.Claimed == nil {
		c.Claimed = make([]*task.Task, 0, n)
	}
	for i := range tasks {
		var id, due, length string
		id, ids, _ = strings.Cut(ids, "\n")
		due, dues, _ = strings.Cut(dues, "\n")
		length, lengths, _ = strings.Cut(lengths, "\n")
		size, err := strconv.Atoi(length)
		if err != nil || size < 0 || size > len(records) {
			size = len(records)
		}
		t := &tasks[i]
		t.ID = id
		if err := task.Decode(records[:size], t); err != nil {
			c.Malformed = append(c.Malformed, Malformed{ID: id, Fence: fence, Lane: lane, Record: records[:size], Err: err})
		} else {
			claimed(t, c.Now, fence, req.Instance, parseScore(due))
			c.Claimed = append(c.Claimed, t)
		}
		records = records[size:]
	}
}

// parseScore reads a score as Redis prints it: an integer, or a float if someone else wrote it.
func parseScore(s string) time.Time {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return store.ScoreTime(float64(ms))
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return time.Time{}
	}
	return store.ScoreTime(f)
}

// claimed fills in what a claim says of a task. Due stays the first due time over all attempts.
func claimed(t *task.Task, now time.Time, fence int64, instance string, due time.Time) {
	if t.Due.IsZero() {
		t.Due = due
	}
	t.Attempt, t.Fence, t.Claimed, t.Instance = t.Attempts+1, fence, now, instance
}
