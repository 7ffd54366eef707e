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

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/store"
)

// Event is a change of state that people want to know about: an instance came or left, another instance leads, a person
// changed a schedule or a task.
type Event struct {
	ID     string // the place in the stream, from which [Queue.FollowEvents] goes on
	At     time.Time
	Kind   string            // "joined", "leader", "lost", ...
	Fields map[string]string // all other fields
}

// Events returns the newest events since a moment (zero: ever), the newest last: at most limit, or 100 if limit is not
// positive.
func (q *Queue) Events(ctx context.Context, since time.Time, limit int) ([]Event, error) {
	if limit <= 0 {
		limit = 100
	}
	rows, err := q.rdb.XRevRangeN(ctx, q.keys.Events, "+", streamStart(since), int64(limit)).Result()
	if err != nil {
		return nil, fmt.Errorf("read events: %w", store.Classify(err))
	}
	slices.Reverse(rows)
	return eventsOf(rows), nil
}

// EventsAfter returns the events after the one with an ID, and since a moment (zero: ever), the oldest first: at most limit.
func (q *Queue) EventsAfter(ctx context.Context, id string, since time.Time, limit int) ([]Event, error) {
	from := "(" + id
	if since.After(history.At(id)) {
		from = streamStart(since)
	}
	rows, err := q.rdb.XRangeN(ctx, q.keys.Events, from, "+", int64(limit)).Result()
	if err != nil {
		return nil, fmt.Errorf("read events: %w", store.Classify(err))
	}
	return eventsOf(rows), nil
}

func eventsOf(rows []redis.XMessage) []Event {
	list := make([]Event, 0, len(rows))
	for _, m := range rows {
		list = append(list, eventOf(m))
	}
	return list
}

// Tell adds an event of a kind. Fields are pairs of a name and a value; Tell leaves out a pair with an empty value. A
// producer's user may lack the right to add events.
func (q *Queue) Tell(ctx context.Context, kind string, fields ...string) error {
	values := []any{"event", kind}
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i+1] != "" {
			values = append(values, fields[i], fields[i+1])
		}
	}
	err := q.rdb.XAdd(ctx, &redis.XAddArgs{Stream: q.keys.Events, MaxLen: int64(q.caps.Events), Approx: true, Values: values}).Err()
	if err != nil {
		return fmt.Errorf("note the event %q: %w", kind, store.Classify(err))
	}
	return nil
}

// followBlock is how long one read waits for new events. FollowEvents notices the end of its context that much later at
// most.
const followBlock = time.Second

// FollowEvents calls fn with each event after the one with the ID from, as it happens; from "" means from now on. It
// returns the error of fn, the error of Redis, or the cause of ctx when ctx ends, up to a second later. To go on, the
// caller calls it again with the ID of the last event.
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
			break // ctx ended while Redis was asked
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
	e := Event{ID: m.ID, At: history.At(m.ID), Fields: make(map[string]string, len(m.Values))}
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

// History calls fn with each entry of the history since a moment (zero: ever), oldest first. It returns at the end of the
// history, or with the error of fn. It reads a page at a time.
func (q *Queue) History(ctx context.Context, since time.Time, fn func(history.Entry) error) error {
	return q.entriesFrom(ctx, q.keys.History, streamStart(since), fn)
}

// HistoryAfter is [Queue.History] for the entries after the one with an ID; "" means all. To follow the history, the
// caller calls it again with the ID of the last entry.
func (q *Queue) HistoryAfter(ctx context.Context, id string, fn func(history.Entry) error) error {
	return q.entriesFrom(ctx, q.keys.History, after(id), fn)
}

// RunsAfter is [Queue.HistoryAfter] for the runs of tasks that no schedule made. They are noted only for an archive (see
// [Caps]), and lie in a stream of their own: a reader of the history meets slots alone, as far back as ever.
func (q *Queue) RunsAfter(ctx context.Context, id string, fn func(history.Entry) error) error {
	return q.entriesFrom(ctx, q.keys.Runs, after(id), fn)
}

// after is the start of a range of a stream that begins behind the entry with an ID; "" means all.
func after(id string) string {
	if id == "" {
		return "-"
	}
	return "(" + id
}

// One call reads up to historyPage entries, of about pageBytes: with an archive an entry may have the outputs of a thousand runs.
// The first call of a reading does not know how large they are.
const (
	historyPage = 500
	firstPage   = 50
	pageBytes   = 8 << 20
)

// firstPage returns how many entries the first call of a reading asks for.
func (q *Queue) firstPage() int64 {
	if q.Notes().Every {
		return firstPage
	}
	return historyPage
}

// nextPage returns how many entries the next call asks for, by the size of those of the last one.
func nextPage(rows []redis.XMessage) int64 {
	size := 1
	for _, m := range rows {
		for _, v := range m.Values {
			s, _ := v.(string)
			size += len(s)
		}
	}
	return int64(max(1, min(historyPage, len(rows)*pageBytes/size)))
}

func (q *Queue) entriesFrom(ctx context.Context, stream, from string, fn func(history.Entry) error) error {
	for page := q.firstPage(); ; {
		rows, err := q.rdb.XRangeN(ctx, stream, from, "+", page).Result()
		if err != nil {
			return fmt.Errorf("read the history: %w", store.Classify(err))
		}
		for _, m := range rows {
			if err := fn(history.ParseEntry(m.ID, m.Values)); err != nil {
				return err
			}
		}
		if int64(len(rows)) < page {
			return nil
		}
		page = nextPage(rows)
		from = "(" + rows[len(rows)-1].ID
	}
}

// HistoryBefore calls fn with the entries before the one with an ID, newest first, until fn returns false; "" means all.
func (q *Queue) HistoryBefore(ctx context.Context, id string, fn func(history.Entry) bool) error {
	to := "+"
	if id != "" {
		to = "(" + id
	}
	if strings.Trim(id, "0") == "-" { // nothing comes before 0-0, and Redis refuses to look
		return nil
	}
	for page := q.firstPage(); ; {
		rows, err := q.rdb.XRevRangeN(ctx, q.keys.History, to, "-", page).Result()
		if err != nil {
			return fmt.Errorf("read the history: %w", store.Classify(err))
		}
		for _, m := range rows {
			if !fn(history.ParseEntry(m.ID, m.Values)) {
				return nil
			}
		}
		if int64(len(rows)) < page {
			return nil
		}
		page = nextPage(rows)
		to = "(" + rows[len(rows)-1].ID
	}
}
