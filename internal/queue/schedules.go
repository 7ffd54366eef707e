package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/seal"
	"github.com/onbeat/onbeat/internal/store"
)

var (
	changeScript    = store.NewScript("change", store.Careful, source("change"))
	schedulesScript = store.NewScript("schedules", source("schedules"))
)

// Stored is a schedule as Redis keeps it. This package does not read the definition.
type Stored struct {
	Name       string
	Definition string     // "" if there is no such schedule
	Last       string     // the last run; a [Change] names it as Expect, and must find it unchanged
	Behind     string     // the slots that the schedule is behind with: see [Behind]
	Pause      string     // the note on its pause, or on its last one: see [ParsePause]
	Seal       *seal.Keys // the keys that open the payload of the definition, and encrypt that of a new one
}

// Absent reports whether there is no such schedule.
func (s Stored) Absent() bool { return s.Definition == "" && s.Last == "" }

// Half reports whether there is a definition without a last run, or the other way round: another program has overwritten
// one of them.
func (s Stored) Half() bool { return (s.Definition == "") != (s.Last == "") }

// Ahead names slots that were pushed ahead of now: Count of them, Every apart, the last at Slot. A schedule with a short
// interval has too many to name each in a command.
type Ahead struct {
	Slot  time.Time
	Every time.Duration
	Count int
}

// RunsOf groups slots, given newest first, into series of equal distance.
func RunsOf(slots []time.Time) (runs []Ahead) {
	for i, slot := range slots {
		if i > 0 {
			r, gap := &runs[len(runs)-1], slots[i-1].Sub(slot)
			if r.Count == 1 || r.Every == gap {
				r.Every = gap
				r.Count++
				continue
			}
		}
		runs = append(runs, Ahead{Slot: slot, Count: 1})
	}
	return runs
}

// size returns how many slots and schedules the change counts for in a batch.
func (c *Change) size() int {
	n := 1
	for _, a := range c.Ahead {
		n += a.Count
	}
	return n
}

// Anchor says how a change moves slot zero. The zero value leaves it.
type Anchor struct {
	At    time.Time     // to this moment
	In    bool          // to now, by the clock of Redis
	Align time.Duration // to the next multiple of this since 1970
}

func (a Anchor) arg() string {
	switch {
	case a.In:
		return "+0"
	case a.Align > 0:
		return "^" + strconv.FormatInt(a.Align.Milliseconds(), 10)
	case !a.At.IsZero():
		return strconv.FormatInt(a.At.UnixMilli(), 10)
	}
	return ""
}

// Change creates, changes, pauses, resumes or deletes a schedule. A change that brings a definition, deletes or retires
// is a revision: see [Queue.Revisions].
type Change struct {
	Name       string
	Expect     string // the last run as the caller read it; "" if the schedule must not exist; see [Never]
	Definition string // the new definition; "" keeps the old one
	Delete     bool   // keeps a record of it: see [Queue.Deleted]
	Retire     bool   // deletes the schedule because a release does not declare it: see [Queue.Retired]
	By         string // the release that retires it
	Anchor     Anchor
	Pause      *bool
	Reason     string    // why it is paused
	Noted      string    // the note on its pause before Redis lost it: see [ParsePause]
	FromNow    bool      // moves the last run to now: the next slot is the first one after now
	Settled    time.Time // moves the last run to this moment, if not zero: Note accounts for the slots up to it
	Runs       int64     // how often a schedule that is made again has run
	Event      string    // for the events; its last word says what the revision is
	Changes    string    // for the events: the values before and after
	Note       string    // for the history
	Behind     string    // the slots that it was behind with, as the caller read them
	Remains    string    // the slots that it is behind with afterwards; if equal to Behind, the script leaves them alone
	Lane       Lane      // the lane of the slots in Ahead
	Ahead      []Ahead   // the slots that the leader may have pushed ahead of now, newest first
}

// Never as [Change].Expect: the schedule must not exist, and Redis must know of no change or deletion of one of that name.
const Never = "never"

// Change applies changes, each if its schedule is still as the caller read it. In the same step it removes the slots that
// the leader had pushed ahead of now. It returns the clock of Redis, and the indexes of the changes that it left out
// because their schedule had changed.
//
// Events and revisions name the actor of the context; see [By]. With an epoch other than zero, Change returns [ErrNotLeader], and does nothing, if that term is over. It splits large
// batches, so after an error the first changes may have been applied.
func (q *Queue) Change(ctx context.Context, epoch int64, changes []Change) (now time.Time, moved []int, err error) {
	for from := 0; from < len(changes); {
		to, size := from, 0
		for to < len(changes) && (to == from || size+changes[to].size() <= MaxBatch) {
			size += changes[to].size()
			to++
		}
		r, err := q.changeBatch(ctx, epoch, changes[from:to])
		if err != nil {
			return now, moved, fmt.Errorf("change schedules: %w", err)
		}
		now = store.FromMs(r.Int())
		for _, i := range r.Indexes() {
			moved = append(moved, from+i)
		}
		if r.Err != nil {
			return now, moved, fmt.Errorf("change schedules: %w", r.Err)
		}
		from = to
	}
	return now, moved, nil
}

func (q *Queue) changeBatch(ctx context.Context, epoch int64, changes []Change) (*store.Reply, error) {
	k := &q.keys
	keys := []string{k.Schedules, k.Last, k.Changed, k.Tasks, k.Meta, k.Leader, k.History, k.Events}
	var lanes laneSet
	term := ""
	if epoch != 0 {
		term = strconv.FormatInt(epoch, 10)
	}
	args := []any{k.Wake, q.caps.history(), q.caps.Events, term, Actor(ctx), len(changes)}
	for i := range changes {
		c := &changes[i]
		definition, pause, slot := c.Definition, "", ""
		switch {
		case c.Retire:
			definition = "~" + c.By
		case c.Delete:
			definition = "-"
		}
		if c.Pause != nil {
			pause = "0"
			if *c.Pause {
				pause = "1"
			}
		}
		if c.FromNow {
			slot = "now"
		} else if !c.Settled.IsZero() {
			slot = strconv.FormatInt(c.Settled.UnixMilli(), 10)
		}
		lane := 0
		if len(c.Ahead) > 0 {
			lane = lanes.number(c.Lane)
		}
		args = append(args, c.Name, c.Expect, definition, c.Anchor.arg(), pause, slot, c.Event, c.Changes, c.Note, c.Runs,
			c.Behind, c.Remains, c.Reason, c.Noted, lane, len(c.Ahead))
		for _, a := range c.Ahead {
			args = append(args, a.Slot.UnixMilli(), a.Every.Milliseconds(), a.Count)
		}
	}
	for _, l := range lanes.list {
		keys = append(keys, k.Due(l))
	}
	keys = append(keys, k.Behind, k.Retired, k.Retirements, k.Revisions, k.Health, k.Pauses)
	v, err := changeScript.Run(ctx, q.rdb, keys, args)
	if err != nil {
		return nil, err
	}
	return store.NewReply(v), nil
}

// Schedule reads one schedule. If it does not exist, [Stored.Absent] reports true, and there is no error.
func (q *Queue) Schedule(ctx context.Context, name string) (Stored, error) {
	list, err := q.SchedulesNamed(ctx, []string{name})
	if err != nil {
		return Stored{}, err
	}
	return list[0], nil
}

// Declarer returns the release that was last allowed to declare schedules, if there was one; see declare.lua.
func (q *Queue) Declarer(ctx context.Context) (release string, ok bool, err error) {
	said, err := q.rdb.HGet(ctx, q.keys.Meta, "declared").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", false, fmt.Errorf("read which release declares: %w", store.Classify(err))
	}
	parts := strings.SplitN(said, " ", 3)
	if len(parts) < 3 {
		return "", false, nil
	}
	return parts[2], true, nil
}

// SchedulesNamed reads schedules by name. It returns one for each name, in that order; see [Stored.Absent].
func (q *Queue) SchedulesNamed(ctx context.Context, names []string) ([]Stored, error) {
	out := make([]Stored, 0, len(names))
	for from := 0; from < len(names); from += MaxBatch {
		part := names[from:min(from+MaxBatch, len(names))]
		args := make([]any, len(part))
		for i, name := range part {
			args[i] = name
		}
		v, err := schedulesScript.Run(ctx, q.rdb, []string{q.keys.Schedules, q.keys.Last, q.keys.Behind, q.keys.Pauses}, args)
		if err != nil {
			return nil, fmt.Errorf("read schedules: %w", err)
		}
		r := store.NewReply(v)
		first := len(out)
		for _, name := range part {
			out = append(out, Stored{Name: name, Definition: r.Text(), Seal: q.seal})
		}
		for i := range part {
			out[first+i].Last = r.Text()
		}
		for i := range part {
			out[first+i].Behind = r.Text()
		}
		for i := range part {
			out[first+i].Pause = r.Text()
		}
		if r.Err != nil {
			return nil, fmt.Errorf("read schedules: %w", r.Err)
		}
	}
	return out, nil
}

// Schedules calls fn with all schedules, a part at a time and in no order, until fn returns an error, which it returns. A
// schedule that changes meanwhile may come twice. It returns a version up to which fn has seen every change; the caller
// goes on from there with [Queue.ChangedSince].
func (q *Queue) Schedules(ctx context.Context, fn func([]Stored) error) (version int64, err error) {
	version, err = q.SchedulesVersion(ctx)
	if err != nil {
		return 0, err
	}
	var cursor uint64
	size := firstEntries
	for {
		kv, next, err := q.rdb.HScan(ctx, q.keys.Schedules, cursor, "", int64(size)).Result()
		if err != nil {
			return 0, fmt.Errorf("read schedules: %w", store.Classify(err))
		}
		size.took(kv)
		names := make([]string, 0, len(kv)/2)
		for i := 0; i+1 < len(kv); i += 2 {
			names = append(names, kv[i])
		}
		for from := 0; from < len(names); from += MaxBatch { // HSCAN may return more than asked: a listpack comes whole
			part := names[from:min(from+MaxBatch, len(names))]
			pipe := q.rdb.Pipeline()
			lasts := pipe.HMGet(ctx, q.keys.Last, part...)
			behind := pipe.HMGet(ctx, q.keys.Behind, part...) // after Last: a slot put off in between is still in one of them
			pauses := pipe.HMGet(ctx, q.keys.Pauses, part...)
			if _, err := pipe.Exec(ctx); err != nil {
				return 0, fmt.Errorf("read last runs: %w", store.Classify(err))
			}
			list := make([]Stored, len(part))
			for i, name := range part {
				last, _ := lasts.Val()[i].(string)
				late, _ := behind.Val()[i].(string)
				paused, _ := pauses.Val()[i].(string)
				list[i] = Stored{Name: name, Definition: kv[2*(from+i)+1], Last: last, Behind: late, Pause: paused, Seal: q.seal}
			}
			if err := fn(list); err != nil {
				return 0, err
			}
		}
		if cursor = next; cursor == 0 {
			return version, nil
		}
	}
}

// ChangedAt returns the versions at which schedules were last changed or deleted, in the order of the names. The version
// is zero for an unknown schedule, and for one that was deleted longer than [NamesKept] ago.
func (q *Queue) ChangedAt(ctx context.Context, names []string) ([]int64, error) {
	versions := make([]int64, 0, len(names))
	for from := 0; from < len(names); from += MaxBatch {
		scores, err := q.rdb.ZMScore(ctx, q.keys.Changed, names[from:min(from+MaxBatch, len(names))]...).Result()
		if err != nil {
			return nil, fmt.Errorf("read changed schedules: %w", store.Classify(err))
		}
		for _, score := range scores {
			versions = append(versions, int64(score))
		}
	}
	return versions, nil
}

// SchedulesVersion returns a number that rises with every change of any schedule. It is at least the clock of Redis, in
// unix ms, at the last change.
func (q *Queue) SchedulesVersion(ctx context.Context) (int64, error) {
	text, err := q.rdb.HGet(ctx, q.keys.Meta, "schedules").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("read the version of the schedules: %w", store.Classify(err))
	}
	return schedulesVersion(text), nil
}

// schedulesVersion reads a version. A damaged one counts as zero, and the next change writes it anew.
func schedulesVersion(text string) int64 {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v >= mostNumber {
		return 0
	}
	return v
}

// mostNumber is larger than any number that a script counts to; lib.lua of package store has the same.
const mostNumber = 9e15

// Mended is a name that [Queue.ChangedSince] returns when a key of the schedules was set aside. The caller then compares
// all schedules with what it knows of them. No schedule can have this name.
const Mended = "*"

// ChangedSince returns the names of the schedules changed after a version, and the version from which the caller goes on.
func (q *Queue) ChangedSince(ctx context.Context, version int64) (names []string, now int64, err error) {
	pipe := q.rdb.Pipeline()
	changed := pipe.ZRangeByScoreWithScores(ctx, q.keys.Changed, &redis.ZRangeBy{
		Min: "(" + strconv.FormatInt(version, 10), Max: "+inf",
	})
	last := pipe.HGet(ctx, q.keys.Meta, "schedules") // read after the changes: none of them has a later version
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, 0, fmt.Errorf("read changed schedules: %w", store.Classify(err))
	}
	latest := schedulesVersion(last.Val())
	now = version
	for _, z := range changed.Val() {
		name, _ := z.Member.(string)
		names = append(names, name)
		if z.Score < mostNumber && (latest == 0 || int64(z.Score) <= latest) { // a damaged one would hide all later changes
			now = max(now, int64(z.Score))
		}
	}
	return names, now, nil
}
