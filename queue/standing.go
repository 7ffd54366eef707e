package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/history"
	"github.com/onbeat/onbeat/store"
)

// Standing reports, of each ID, whether there is a task of it: due, running, dead or kept.
func (q *Queue) Standing(ctx context.Context, ids []string) ([]bool, error) {
	found := make([]bool, 0, len(ids))
	for from := 0; from < len(ids); from += MaxBatch {
		part := ids[from:min(from+MaxBatch, len(ids))]
		records, err := q.rdb.HMGet(ctx, q.keys.Tasks, part...).Result()
		if err != nil {
			return nil, fmt.Errorf("look for tasks: %w", store.Classify(err))
		}
		for _, r := range records {
			found = append(found, r != nil)
		}
	}
	return found, nil
}

// InPlace reports whether a task is where a task can be, rather than only recorded: [Queue.Standing] for one task, in
// full. One that has ended is, though its record cannot be read; of another that cannot be read it returns an error.
func (q *Queue) InPlace(ctx context.Context, id string) (bool, error) {
	_, err := q.Task(ctx, id)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// HistorySince is the moment from which the history has everything; zero if nothing was ever dropped from it. Of an
// empty history it is zero too.
func (q *Queue) HistorySince(ctx context.Context) (time.Time, error) {
	first, err := q.rdb.XRangeN(ctx, q.keys.History, "-", "+", 1).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the history: %w", store.Classify(err))
	}
	if len(first) == 0 {
		return time.Time{}, nil
	}
	info, err := q.rdb.XInfoStream(ctx, q.keys.History).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the history: %w", store.Classify(err))
	}
	// Redis before 7 does not count what was added. Trimming never goes below the cap.
	whole := info.EntriesAdded == info.Length
	if info.EntriesAdded == 0 {
		whole = info.Length < int64(q.caps.History)
	}
	if whole {
		return time.Time{}, nil
	}
	return history.At(first[0].ID), nil
}

// Attended reports whether an instance is there: registered, with a lease that runs.
func (q *Queue) Attended(ctx context.Context) (bool, error) {
	now, err := q.Now(ctx)
	if err != nil {
		return false, err
	}
	n, err := q.rdb.ZCount(ctx, q.keys.Instances, "("+strconv.FormatInt(store.Ms(now), 10), "+inf").Result()
	if err != nil {
		return false, fmt.Errorf("count the instances: %w", store.Classify(err))
	}
	return n > 0, nil
}

// TryWrite tries whether Redis takes writes, as it takes those of an instance, and changes nothing. It returns what Redis
// says if it does not: too few replicas, no room, a disk that is full, a replica.
func (q *Queue) TryWrite(ctx context.Context) error {
	if err := q.rdb.Do(ctx, "ZADD", q.keys.Watch, "XX", 0, "\x00").Err(); err != nil {
		return fmt.Errorf("write: %w", store.Classify(err))
	}
	return nil
}
