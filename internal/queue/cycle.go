package queue

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

var cycleScript = store.NewScript("cycle", WakeLib, source("lib_held"), source("lib_cancel"), source("cycle"), source("cycle_settle"),
	source("cycle_crowd"), source("cycle_claim")).Claiming()

// MaxBatch is the most tasks that one call settles or claims. A caller that has more makes more calls.
const MaxBatch = 1000

// Outcome is the outcome of a run.
type Outcome uint8

// The outcomes, in the order in which cycle.lua takes them.
const (
	Finished Outcome = iota // done: the task leaves
	Kept                    // done: the task stays visible for Keep
	Moved                   // due again: a retry if Record is set, else handed back
	Died                    // dead, with a new record
	outcomes
)

// Settlement is the outcome of one run. ID and Fence name the claim. Outcome decides which other fields count.
type Settlement struct {
	ID      string
	Fence   int64
	Outcome Outcome
	Keep    time.Duration // Kept
	Lane    Lane          // Moved
	Delay   time.Duration // Moved: due again this long after the clock of Redis
	Due     time.Time     // Moved: due again then, if not zero, in place of Delay
	Record  []byte        // Kept, Moved (nil leaves the record as it is), Died
	Note    string        // of the run, as [history.Notes] writes it; "": the run is not noted

	Task  *task.Task // Moved: the task, for the caller in case Redis refuses the settlement; it is not sent
	Tried bool       // for the caller: an earlier call may have carried this settlement; it is not sent
}

// LaneClaim is one lane of a request. The script reads the lanes in the order of the request.
type LaneClaim struct {
	Lane  Lane
	Group int // neighbouring lanes with the same number share what is claimed; see OwnGroup
	Limit int // most tasks of this type to run at once over all instances; 0: no limit; negative: claim nothing here
}

// The groups of the lanes of the dispatcher's own types ([task.Own]).
const (
	OwnGroup  = -1
	BulkGroup = -2 // bulk actions, which last
)

// Taken is how many workers of the caller a schedule has taken.
type Taken struct {
	Schedule string
	Workers  int
}

// CycleRequest is one round trip of a consumer.
type CycleRequest struct {
	Instance string
	Release  string // for the history
	Gen      int64
	Seq      int64   // larger than in every earlier call of this generation, or the call is stale
	Want     int     // most tasks to claim, at most MaxBatch
	Own      int     // most tasks to claim besides, from the lanes of OwnGroup and BulkGroup
	Bulk     int     // of these, most from BulkGroup
	Workers  int     // workers of the caller for tasks of users: while others wait, a schedule gets half of them at most; 0: any number
	Taken    []Taken // the schedules that have taken more than an eighth of the workers
	Lanes    []LaneClaim
	Settle   []Settlement // at most MaxBatch
	Reads    string       // a name for the lanes it reads: instances with the same name watch for each other
	LanesVer int64        // claim nothing if the list of lanes has another version; 0 claims anyway
	Owed     []string     // the keys that an earlier reply named in its Owed
}

// CycleReply is the reply to a [CycleRequest].
type CycleReply struct {
	Now      time.Time // by the clock of Redis, to the microsecond
	NextDue  time.Time // the next due time in the lanes that this instance reads; zero if nothing waits
	MayClaim bool      // the leader's rule lets this instance claim; if not, wait to be woken
	Watching bool      // this instance must look again at NextDue; if not, another one does
	LeftDue  bool      // the script left due work, or did not look because the list of lanes is not of version LanesVer
	LanesVer int64     // the version of the list of lanes in Redis
	Void     []int     // indexes of settlements that changed nothing, because the claim was void
	Skipped  int       // slots that left because of their overlap policy
	Refused  []int     // indexes of Moved settlements that Redis refused because of a request to cancel: settle as cancelled
	// Owed lists keys that have room while a task waits for them in a lane that the request did not name. The caller reads
	// the lanes again and sends these keys with the next request.
	Owed      []string
	Claimed   []*task.Task
	Malformed []Malformed
}

// Malformed is a claimed task whose record this release cannot read: a much newer release wrote it, or it is damaged.
type Malformed struct {
	ID     string
	Fence  int64
	Lane   Lane
	Record string
	Err    error
}

// Cycle settles runs that ended and claims due tasks, in one step. It never sends a request twice. After an error that
// leaves the outcome open ([task.ErrUnreachable]), or after [ErrStale], the caller reads with [Queue.Claims] what this
// generation holds. It may send the settlements again: to settle a run twice is harmless.
//
// Cycle returns [ErrFenced], and does nothing, if the instance's lease ran out.
func (q *Queue) Cycle(ctx context.Context, r *CycleRequest) (*CycleReply, error) {
	if r.Want > MaxBatch || r.Own > MaxBatch || len(r.Settle) > MaxBatch {
		return nil, fmt.Errorf("cycle: %d to claim and %d to settle, the limit is %d", max(r.Want, r.Own), len(r.Settle), MaxBatch)
	}
	k := &q.keys
	keys := make([]string, 0, 16+len(r.Lanes))
	keys = append(keys, k.Instances, k.Members, k.Leader, k.Meta, k.Watch, k.Tasks, k.Running(r.Gen), k.Done, k.Dead,
		k.History, k.Active, k.Held, k.Cancel, k.Lanes, k.Events)
	numbers := make(map[Lane]int, len(r.Lanes))
	args := make([]any, 0, 32+3*len(r.Lanes)+5*len(r.Settle))
	args = append(args, r.Instance, r.Gen, r.Seq, r.Want, q.caps.history(), q.caps.Dead, q.caps.Done, k.Wake, r.Reads,
		r.LanesVer, strings.Join(r.Owed, keySeparator), r.Release, fmt.Sprint(r.Own, " ", r.Bulk), r.workers(), len(r.Lanes))
	for i, l := range r.Lanes {
		keys = append(keys, k.Due(l.Lane))
		numbers[l.Lane] = i + 1
		args = append(args, l.Group, l.Limit, l.Lane.String())
	}
	every := q.Notes().Every
	if every {
		keys = append(keys, k.Runs)
	}
	order, args, err := appendSettlements(args, r.Settle, numbers, every)
	if err != nil {
		return nil, err
	}
	v, err := cycleScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return nil, fmt.Errorf("cycle: %w", err)
	}
	return decodeCycle(store.NewReply(v), r, order)
}

// workers returns the argument that says how many workers there are, and which schedules have taken many of them.
func (r *CycleRequest) workers() any {
	if len(r.Taken) == 0 {
		return r.Workers
	}
	text := strconv.AppendInt(nil, int64(r.Workers), 10)
	for _, t := range r.Taken {
		text = append(append(append(text, keySeparator...), t.Schedule...), keySeparator...)
		text = strconv.AppendInt(text, int64(t.Workers), 10)
	}
	return text
}

// appendSettlements appends the settlements, grouped by outcome as cycle.lua reads them, and returns their order.
func appendSettlements(args []any, settle []Settlement, lanes map[Lane]int, every bool) ([]int, []any, error) {
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
		args = append(args, &settle[i].ID) // a pointer fits into an interface value without an allocation
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
	args = appendNotes(args, settle, order, every, false)
	if every {
		args = appendNotes(args, settle, order, every, true)
	}
	return order, args, nil
}

// appendFences appends each fence with how many settlements in a row have it. Tasks that were claimed together share a
// fence, and mostly end together.
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
		number, count := r.Int(), r.Int()
		l := laneTasks{idSizes: r.Text(), ids: r.Text(), dues: r.Text(), sizes: r.Text(), records: r.Text()}
		if r.Err != nil || number < 1 || int(number) > len(req.Lanes) || count < 1 || count > MaxBatch {
			break
		}
		out.decodeLane(req, req.Lanes[number-1].Lane, fence, int(count), l)
	}
	if r.Err != nil {
		return nil, fmt.Errorf("cycle: %w", r.Err)
	}
	return out, nil
}

// keySeparator stands between keys, which may not contain it.
const keySeparator = "\x1f"

// indexes turns the places that a script names, in the order in which it got the settlements, into the caller's indexes.
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

// laneTasks is what the reply says of the tasks of a lane. The sizes and due times are series: see [series].
type laneTasks struct{ idSizes, ids, dues, sizes, records string }

// decodeLane cuts the joined strings of a lane into tasks. All tasks of a lane share one allocation. If the lengths do not
// fit the records, a record comes out damaged, and its task is malformed.
func (c *CycleReply) decodeLane(req *CycleRequest, lane Lane, fence int64, n int, l laneTasks) {
	tasks := make([]task.Task, n)
	if c.Claimed == nil {
		c.Claimed = make([]*task.Task, 0, n)
	}
	idSizes, dues, sizes := series[int]{rest: l.idSizes}, series[time.Time]{rest: l.dues}, series[int]{rest: l.sizes}
	for i := range tasks {
		t := &tasks[i]
		var record string
		t.ID, l.ids = cutAt(l.ids, idSizes.next(parseSize))
		record, l.records = cutAt(l.records, sizes.next(parseSize))
		due := dues.next(parseScore)
		if err := task.Decode(record, t); err != nil {
			c.Malformed = append(c.Malformed, Malformed{ID: t.ID, Fence: fence, Lane: lane, Record: record, Err: err})
		} else {
			claimed(t, c.Now, fence, req.Instance, due)
			c.Claimed = append(c.Claimed, t)
		}
	}
}

// series reads values that are joined by commas, of which "20*3" is 20 three times: most tasks of a claim have the same due
// time, and IDs and records of the same length. After the end it goes on with the parse of "".
type series[T any] struct {
	rest  string
	value T
	left  int // how often the value comes again
}

func (s *series[T]) next(parse func(string) T) T {
	if s.left == 0 {
		var part string
		part, s.rest, _ = strings.Cut(s.rest, ",")
		value, times, several := strings.Cut(part, "*")
		s.value, s.left = parse(value), 1
		if several {
			s.left = max(parseSize(times), 1)
		}
	}
	s.left--
	return s.value
}

// parseSize reads a length, and returns -1 for what is none.
func parseSize(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n >= 0 {
		return n
	}
	return -1
}

// cutAt cuts off the first n bytes of s, or all of it if n is no length of it.
func cutAt(s string, n int) (first, rest string) {
	if n < 0 || n > len(s) {
		n = len(s)
	}
	return s[:n], s[n:]
}

// parseScore reads a score as Redis prints it: an integer, or a float if another program wrote it.
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

// claimed fills in the fields that come from the claim. Due stays the first due time over all attempts.
func claimed(t *task.Task, now time.Time, fence int64, instance string, due time.Time) {
	if t.Due.IsZero() {
		t.Due = due
	}
	t.Attempt, t.Fence, t.Claimed, t.Instance = t.Attempts+1, fence, now, instance
}
