package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// Exist reports for each ID whether a task with it exists: due, running, dead or kept.
func (q *Queue) Exist(ctx context.Context, ids []string) ([]bool, error) {
	found := make([]bool, 0, len(ids))
	for from := 0; from < len(ids); from += MaxBatch {
		part := ids[from:min(from+MaxBatch, len(ids))]
		v, err := existScript.Run(ctx, q.rdb, []string{q.keys.Tasks}, idArgs(part))
		if err != nil {
			return nil, fmt.Errorf("look for tasks: %w", err)
		}
		r := store.NewReply(v)
		for range part {
			found = append(found, r.Int() == 1)
		}
		if r.Err != nil {
			return nil, fmt.Errorf("look for tasks: %w", r.Err)
		}
	}
	return found, nil
}

// UniqueHeld returns how many of the unique keys a task of the last window holds. It sends one command for each [MaxBatch] of them.
func (q *Queue) UniqueHeld(ctx context.Context, uniques []string) (held int, err error) {
	for part := range slices.Chunk(uniques, MaxBatch) {
		n, err := q.rdb.Exists(ctx, q.uniqueKeys(part)...).Result()
		if err != nil {
			return held, fmt.Errorf("look for unique keys: %w", store.Classify(err))
		}
		held += int(n)
	}
	return held, nil
}

func (q *Queue) uniqueKeys(uniques []string) []string {
	keys := make([]string, len(uniques))
	for i, u := range uniques {
		keys[i] = q.keys.Unique(u)
	}
	return keys
}

// InPlace reports whether a task is really due, running, dead or kept, where [Queue.Exist] only looks for its record.
// It reports true for an ended task whose record cannot be read. For another task whose record cannot be read it returns
// an error.
func (q *Queue) InPlace(ctx context.Context, id string) (bool, error) {
	_, err := q.Task(ctx, id)
	if errors.Is(err, task.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// HistorySince returns the moment from which the history is complete. It is zero if nothing was ever trimmed from the
// history, and if the history is empty.
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
	// Redis before 7 does not count the entries that were added. Trimming never goes below the cap.
	whole := info.EntriesAdded == info.Length
	if info.EntriesAdded == 0 {
		whole = info.Length < int64(q.caps.History)
	}
	if whole {
		return time.Time{}, nil
	}
	return history.At(first[0].ID), nil
}

// Attended reports whether at least one instance is registered and its lease has not run out.
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

// TryWrite tries whether Redis accepts the writes of an instance, and changes nothing. If not, it returns the reason that
// Redis gives: too few replicas, no memory, a full disk, or that it is a replica.
func (q *Queue) TryWrite(ctx context.Context) error {
	if err := q.rdb.Do(ctx, "ZADD", q.keys.Watch, "XX", 0, "\x00").Err(); err != nil {
		return fmt.Errorf("write: %w", store.Classify(err))
	}
	return nil
}
