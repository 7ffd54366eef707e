package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/store"
	"github.com/onbeat/onbeat/task"
)

// Event is a change of state that people want to know of: an instance came or went, another leads, a schedule or a
// task was changed by hand.
type Event struct {
	ID     string // place in the stream: what [Queue.FollowEvents] goes on from
	At     time.Time
	Kind   string            // "joined", "leader", "lost", ...
	Fields map[string]string // the rest
}

// Events reads the newest events since a moment (zero: ever), at most limit (default 100), the newest last.
func (q *Queue) Events(ctx context.Context, since time.Time, limit int) ([]Event, error) {
	if limit <= 0 {
		limit = 100
	}
	rows, err := q.rdb.XRevRangeN(ctx, q.keys.Events, "+", streamStart(since), int64(limit)).Result()
	if err != nil {
		return nil, fmt.Errorf("read events: %w", store.Classify(err))
	}
	slices.Reverse(rows)
	list := make([]Event, 0, len(rows))
	for _, m := range rows {
		list = append(list, eventOf(m))
	}
	return list, nil
}

// followBlock is how long one read waits for new events, and so how late the end of a context may be noticed.
const followBlock = time.Second

// FollowEvents calls fn with each event behind the one with the ID from, as it happens; with "", from now on. It
// returns when fn does with an error, when Redis fails, or with its cause when ctx ends. To go on, call it again with
// the ID of the last event.
func (q *Queue) FollowEvents(ctx context.Context, from string, fn func(Event) error) error {
	if from == "" {
		last, err := q.Events(ctx, time.Time{}, 1)
		if err != nil {
			return err
		}
		from = "0-0"
		if len(last) > 0 {
			from = last[0].ID
		}
	}
	for ctx.Err() == nil {
		streams, err := q.rdb.XRead(ctx, &redis.XReadArgs{
			Streams: []string{q.keys.Events, from}, Count: MaxBatch, Block: followBlock,
		}).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil && ctx.Err() != nil {
			break // it ended while Redis was asked
		}
		if err != nil {
			return fmt.Errorf("follow events: %w", store.Classify(err))
		}
		for _, s := range streams {
			for _, m := range s.Messages {
				from = m.ID
				if err := fn(eventOf(m)); err != nil {
					return err
				}
			}
		}
	}
	return context.Cause(ctx)
}

func eventOf(m redis.XMessage) Event {
	e := Event{ID: m.ID, At: streamTime(m.ID), Fields: make(map[string]string, len(m.Values))}
	for field, value := range m.Values {
		s, _ := value.(string)
		if field == "event" {
			e.Kind = s
		} else {
			e.Fields[field] = s
		}
	}
	return e
}

func streamStart(since time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return strconv.FormatInt(max(since.UnixMilli(), 0), 10)
}

// streamTime is the clock of Redis in the ID of an entry.
func streamTime(id string) time.Time {
	ms, _, _ := strings.Cut(id, "-")
	n, _ := strconv.ParseInt(ms, 10, 64)
	return store.FromMs(store.ClampMs(float64(n)))
}

// Note is what became of one task, or of a range of a schedule's slots.
type Note struct {
	// Schedule is empty for a task that is no slot.
	Schedule string
	// Slot of a single task; From and To (both included) of a range of slots that were not pushed.
	Slot, From, To time.Time
	// Word is done, failed (to be retried), dead, lost (with its instance), cancelled, returned (handed back at
	// shutdown), skipped, missed; of ranges missed, paused, changed, deleted, retired or skipped; or what a newer release
	// writes. "was" says nothing of slots, but which rule, in Why, a schedule had from its anchor, From, until At.
	Word string
	// Attempt and Claimed tell of the run, if there was one.
	Attempt int
	Claimed time.Time
	// Count is how many slots a range has.
	Count int64
	// Why is the reason given, such as overlap or outage.
	Why string
	// TaskID is empty for a range.
	TaskID string
	// Gen is the generation that wrote it, or 0.
	Gen int64
	// At is when it was written, by the clock of Redis.
	At time.Time
}

// HistoryEntry is what one step wrote to the history.
type HistoryEntry struct {
	ID    string
	At    time.Time
	Notes []Note
}

// History calls fn with what became of the slots of schedules since a moment (zero: ever), oldest first, until the
// present or until fn returns an error, which it then returns. It reads a page at a time.
func (q *Queue) History(ctx context.Context, since time.Time, fn func(HistoryEntry) error) error {
	const page = 500
	from := streamStart(since)
	for {
		rows, err := q.rdb.XRangeN(ctx, q.keys.History, from, "+", page).Result()
		if err != nil {
			return fmt.Errorf("read the history: %w", store.Classify(err))
		}
		for _, m := range rows {
			if err := fn(historyEntry(m)); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return nil
		}
		from = "(" + rows[len(rows)-1].ID
	}
}

func historyEntry(m redis.XMessage) HistoryEntry {
	e := HistoryEntry{ID: m.ID, At: streamTime(m.ID)}
	text, _ := m.Values["gen"].(string)
	gen, _ := strconv.ParseInt(text, 10, 64)
	for _, field := range []string{"slots", "runs"} {
		text, _ := m.Values[field].(string)
		for line := range strings.SplitSeq(text, "\n") {
			if line == "" {
				continue
			}
			n := ParseNote(line)
			n.Gen, n.At = gen, e.At
			e.Notes = append(e.Notes, n)
		}
	}
	return e
}

// ParseNote reads one line of the history. What is not as expected is left as it is, in TaskID.
//
//	name@1700000000000 done 1 1700000000012
//	name@1700000000000..1700000060000 missed 61 outage
func ParseNote(line string) Note {
	if n, ok := parseRange(line); ok {
		return n
	}
	// An ID may have spaces, so it is read from the end.
	n := Note{TaskID: line}
	rest, last, ok := cutLast(line)
	if !ok {
		return n
	}
	if head, attempt, ok := cutLast(rest); ok {
		id, word, ok := cutLast(head)
		a, err1 := strconv.Atoi(attempt)
		ms, err2 := strconv.ParseInt(last, 10, 64)
		if ok && err1 == nil && err2 == nil {
			n.TaskID, n.Word, n.Attempt, n.Claimed = id, word, a, store.FromMs(store.ClampMs(float64(ms)))
		} else {
			n.TaskID, n.Word, n.Why = head, attempt, last
		}
	} else {
		n.TaskID, n.Word = rest, last
	}
	if schedule, slot, ok := task.ParseSlotID(n.TaskID); ok {
		n.Schedule, n.Slot = schedule, store.ScoreTime(float64(slot.UnixMilli()))
	}
	return n
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ' ')
	if i <= 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// parseRange reads <schedule>@<from ms>..<to ms> <word> <count> [why].
func parseRange(line string) (n Note, ok bool) {
	parts := strings.SplitN(line, " ", 4)
	dots := strings.LastIndex(parts[0], "..") // a name may have dots
	if dots < 0 || len(parts) < 3 {
		return n, false
	}
	schedule, from, ok := task.ParseSlotID(parts[0][:dots])
	end, err1 := strconv.ParseInt(parts[0][dots+2:], 10, 64)
	count, err2 := strconv.ParseInt(parts[2], 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return n, false
	}
	n = Note{Schedule: schedule, From: store.ScoreTime(float64(from.UnixMilli())), To: store.ScoreTime(float64(end)), Word: parts[1], Count: count}
	if len(parts) == 4 {
		n.Why = parts[3]
	}
	return n, true
}
