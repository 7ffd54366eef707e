package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/store"
)

// Tail has the entries after a place in a stream, for a reader that follows it.
type Tail[T any] struct {
	Items []T // the oldest first
	// There says that nothing before Items is missing: the entry of the place is still in the stream, or the place is "".
	There bool
	// More says that the stream goes on behind Items.
	More bool
	// Fits is how many entries of the size of these one reading should ask for.
	Fits int
	// Stream is the stream as it was just before Items were read.
	Stream Stream
}

// Stream describes a stream. A value that Redis does not tell is zero.
type Stream struct {
	First, Last string // the IDs of the oldest entry, and of the one that was added last
	Length      int64
	Added       int64 // how many entries were ever added; Redis before 7 does not count them
}

// HistoryTail returns the entries of the history after the one with an ID, the oldest first: at most n. After "" all come.
func (q *Queue) HistoryTail(ctx context.Context, after string, n int) (Tail[history.Entry], error) {
	return tailOf(ctx, q, q.keys.History, after, n, func(m redis.XMessage) history.Entry { return history.ParseEntry(m.ID, m.Values) })
}

// RunsTail is [Queue.HistoryTail] for the runs of tasks that no schedule made.
func (q *Queue) RunsTail(ctx context.Context, after string, n int) (Tail[history.Entry], error) {
	return tailOf(ctx, q, q.keys.Runs, after, n, func(m redis.XMessage) history.Entry { return history.ParseEntry(m.ID, m.Values) })
}

// EventTail is [Queue.HistoryTail] for events.
func (q *Queue) EventTail(ctx context.Context, after string, n int) (Tail[Event], error) {
	return tailOf(ctx, q, q.keys.Events, after, n, eventOf)
}

func tailOf[T any](ctx context.Context, q *Queue, key, after string, n int, of func(redis.XMessage) T) (Tail[T], error) {
	pipe := q.rdb.Pipeline()
	info := pipe.XInfoStream(ctx, key)
	found := pipe.XRangeN(ctx, key, cmp.Or(after, "-"), "+", int64(n)+2) // the place itself, and one that says there are more
	_, _ = pipe.Exec(ctx)                                                // each command has its own error
	if err := found.Err(); err != nil {
		return Tail[T]{}, fmt.Errorf("read what is new in %s: %w", key, store.Classify(err))
	}
	t := Tail[T]{There: after == "", Stream: streamOf(info)}
	rows := found.Val()
	if len(rows) > 0 && rows[0].ID == after {
		t.There, rows = true, rows[1:]
	}
	t.More, t.Fits = len(rows) > n, int(nextPage(rows))
	for _, m := range rows[:min(len(rows), n)] {
		t.Items = append(t.Items, of(m))
	}
	return t, nil
}

// streamOf returns nothing of a stream that is not there, or of which the user may not ask.
func streamOf(cmd *redis.XInfoStreamCmd) Stream {
	info, err := cmd.Result()
	if err != nil {
		return Stream{}
	}
	return Stream{First: info.FirstEntry.ID, Last: info.LastGeneratedID, Length: info.Length, Added: info.EntriesAdded}
}

// HistoryUpTo returns the ID of the newest entry of the history up to an ID, itself included; "" if there is none.
func (q *Queue) HistoryUpTo(ctx context.Context, id string) (string, error) {
	return q.upTo(ctx, q.keys.History, id)
}

// RunsUpTo is [Queue.HistoryUpTo] for the runs of tasks that no schedule made.
func (q *Queue) RunsUpTo(ctx context.Context, id string) (string, error) {
	return q.upTo(ctx, q.keys.Runs, id)
}

// EventsUpTo is [Queue.HistoryUpTo] for events.
func (q *Queue) EventsUpTo(ctx context.Context, id string) (string, error) {
	return q.upTo(ctx, q.keys.Events, id)
}

func (q *Queue) upTo(ctx context.Context, key, id string) (string, error) {
	rows, err := q.rdb.XRevRangeN(ctx, key, id, "-", 1).Result()
	switch {
	case err != nil:
		return "", fmt.Errorf("look for an entry of %s: %w", key, store.Classify(err))
	case len(rows) == 0:
		return "", nil
	}
	return rows[0].ID, nil
}

var trimScript = store.NewScript("trim", source("trim")).Fleeting()

const (
	// mostTrimmed is how many entries of a stream one call removes.
	mostTrimmed = 10_000
	// runsKept is how many entries of the runs of other tasks stay in Redis once an archive has them: only notifications are
	// made of what is there, and they say what they need.
	runsKept = 100
)

// TrimHistory removes the oldest entries of the history, which an archive has. Seen is the stream as it was when all that it
// had was archived. As many entries as [Caps].History says stay. Nothing is removed if the oldest entry is another one by now.
// It returns how many were removed: at most 10,000 a call, and mostly by the hundred. The user needs the right to XTRIM.
func (q *Queue) TrimHistory(ctx context.Context, seen Stream) (int64, error) {
	return q.trim(ctx, q.keys.History, seen, q.caps.History, "")
}

// TrimRuns is [Queue.TrimHistory] for the runs of tasks that no schedule made, of which a few entries stay. Needed is the ID of an
// entry that is read elsewhere ("": none is). It stays too, with all that came after it, but no more entries than of the history.
func (q *Queue) TrimRuns(ctx context.Context, seen Stream, needed string) (int64, error) {
	if needed != "" && seen.Length > int64(q.caps.History) {
		return q.trim(ctx, q.keys.Runs, seen, q.caps.History, "")
	}
	if history.Before(seen.Last, needed) { // entries after seen are not archived
		needed = seen.Last
	}
	return q.trim(ctx, q.keys.Runs, seen, runsKept, needed)
}

func (q *Queue) trim(ctx context.Context, key string, seen Stream, keep int, needed string) (int64, error) {
	over := seen.Length - int64(keep)
	if over <= 0 || seen.First == "" {
		return 0, nil
	}
	v, err := trimScript.Run(ctx, q.rdb, []string{key}, []any{seen.First, min(over, mostTrimmed), needed})
	if err != nil {
		return 0, fmt.Errorf("trim %s: %w", key, err)
	}
	r := store.NewReply(v)
	return r.Int(), r.Err
}

// ChangedSchedules returns the names of schedules that were changed after a version, those changed first first: about n. Next
// is the version to go on from; it is the given one if nothing was changed.
func (q *Queue) ChangedSchedules(ctx context.Context, version int64, n int) (names []string, next int64, err error) {
	by := &redis.ZRangeBy{Min: "(" + strconv.FormatInt(version, 10), Max: strconv.FormatInt(mostNumber, 10), Count: int64(n)}
	rows, err := q.rdb.ZRangeByScoreWithScores(ctx, q.keys.Changed, by).Result()
	if err == nil && len(rows) == n { // more of the last one's version may follow
		last := strconv.FormatInt(int64(rows[n-1].Score), 10)
		by.Max, by.Count = last, -1
		rows, err = q.rdb.ZRangeByScoreWithScores(ctx, q.keys.Changed, by).Result()
	}
	if err != nil {
		return nil, version, fmt.Errorf("read changed schedules: %w", store.Classify(err))
	}
	next = version
	for _, z := range rows {
		if name, _ := z.Member.(string); name != Mended {
			names = append(names, name)
		}
		next = max(next, int64(z.Score))
	}
	return names, next, nil
}

// RevisionsOf is [Queue.Revisions] of several schedules, in their order.
func (q *Queue) RevisionsOf(ctx context.Context, names []string) ([][]Revision, error) {
	if len(names) == 0 {
		return nil, nil
	}
	texts, err := q.rdb.HMGet(ctx, q.keys.Revisions, names...).Result()
	if err != nil {
		return nil, fmt.Errorf("read the revisions of %d schedules: %w", len(names), store.Classify(err))
	}
	lists := make([][]Revision, len(names))
	for i, v := range texts {
		text, _ := v.(string)
		lists[i] = parseRevisions(text)
	}
	return lists, nil
}

// PlaceBefore is a place in a stream some time before that of an entry.
func PlaceBefore(id string, d time.Duration) string {
	return strconv.FormatInt(max(history.At(id).Add(-d).UnixMilli(), 0), 10)
}

// EventsSince returns the moment from which the events are complete. It is zero if Redis never dropped an event, and if there is no event.
func (q *Queue) EventsSince(ctx context.Context) (time.Time, error) {
	t, err := q.EventTail(ctx, "", 1)
	whole := t.Stream.Added == t.Stream.Length
	if t.Stream.Added == 0 { // Redis before 7 does not count. Trimming never goes below the cap.
		whole = t.Stream.Length < int64(q.caps.Events)
	}
	if err != nil || whole || len(t.Items) == 0 {
		return time.Time{}, err
	}
	return t.Items[0].At, nil
}

// ArchivedSince returns since when the namespace is archived; zero if it never was. An archive that has nothing although the namespace
// is archived has lost what it had. Older says that this includes what was archived before Redis came back empty.
func (q *Queue) ArchivedSince(ctx context.Context) (since time.Time, older bool, err error) {
	v, err := q.rdb.HMGet(ctx, q.keys.Meta, "archived", "archived_older").Result()
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read since when the namespace is archived: %w", store.Classify(err))
	}
	text, there := v[0].(string)
	if !there {
		return time.Time{}, false, nil
	}
	ms, damaged := strconv.ParseInt(text, 10, 64)
	return store.FromMs(max(store.ClampMs(float64(ms)), 1)), v[1] == "1" || damaged != nil, nil // a damaged one is the beginning of time
}

// NoteArchived notes since when the namespace is archived, see [Queue.ArchivedSince].
func (q *Queue) NoteArchived(ctx context.Context, since time.Time, older bool) error {
	if err := q.rdb.HSet(ctx, q.keys.Meta, "archived", since.UnixMilli(), "archived_older", older).Err(); err != nil {
		return fmt.Errorf("note since when the namespace is archived: %w", store.Classify(err))
	}
	return nil
}

// Regained says how the loss of all that Redis knew was dealt with: see the states. It is "" until then, also of a namespace that is new.
func (q *Queue) Regained(ctx context.Context) (state string, err error) {
	state, err = q.rdb.HGet(ctx, q.keys.Meta, "regained").Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("read whether the schedules are complete: %w", store.Classify(err))
	}
	return state, nil
}

// The states of [Queue.Regained].
const (
	Regaining   = "begun"   // the leader restores what the archive knows of declared schedules
	FromNothing = "nothing" // there was no archive
	FromArchive = "archive" // the schedules of the archive are there
)

// NoteRegained notes a state; see [Queue.Regained].
func (q *Queue) NoteRegained(ctx context.Context, state string) error {
	if err := q.rdb.HSet(ctx, q.keys.Meta, "regained", state).Err(); err != nil {
		return fmt.Errorf("note that the schedules are complete: %w", store.Classify(err))
	}
	return nil
}
