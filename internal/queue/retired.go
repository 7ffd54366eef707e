package queue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/internal/store"
)

// RetiredKept is how long the record of a retired or deleted schedule is kept. If its release is in force again by then, or
// if a person restores it, the schedule goes on as it was.
const RetiredKept = 30 * 24 * time.Hour

// Retired is a schedule that is gone and may come back, as it was when a newer release did not declare it any more, or when
// it was deleted.
type Retired struct {
	Name       string
	At         time.Time
	By         string // the release that retired it, or who deleted it
	Deleted    bool
	Definition string
	Last       string
}

// Retired returns, by name, the named schedules that are retired now. It leaves out a schedule that was made,
// changed or deleted by hand since.
func (q *Queue) Retired(ctx context.Context, names []string) (map[string]Retired, error) {
	return q.gone(ctx, names, false)
}

// Deleted returns, by name, the named schedules that were deleted and have not come back since.
func (q *Queue) Deleted(ctx context.Context, names []string) (map[string]Retired, error) {
	return q.gone(ctx, names, true)
}

// AllGone returns all schedules that [Queue.Deleted] would, or those that [Queue.Retired] would, in no order.
func (q *Queue) AllGone(ctx context.Context, deleted bool) ([]Retired, error) {
	found := map[string]Retired{}
	for cursor, size := uint64(0), firstEntries; ; {
		kv, next, err := q.rdb.HScan(ctx, q.keys.Retired, cursor, "", int64(size)).Result()
		if err != nil {
			return nil, fmt.Errorf("read schedules that are gone: %w", store.Classify(err))
		}
		size.took(kv)
		var names []string
		for i := 0; i+1 < len(kv); i += 2 {
			if r, ok := parseRetired(kv[i], kv[i+1]); ok && r.Deleted == deleted {
				names = append(names, r.Name)
			}
		}
		part, err := q.gone(ctx, names, deleted)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, part)
		if cursor = next; cursor == 0 {
			return slices.Collect(maps.Values(found)), nil
		}
	}
}

func (q *Queue) gone(ctx context.Context, names []string, deleted bool) (map[string]Retired, error) {
	found := map[string]Retired{}
	for from := 0; from < len(names); from += MaxBatch {
		part := names[from:min(from+MaxBatch, len(names))]
		values, err := q.rdb.HMGet(ctx, q.keys.Retired, part...).Result()
		if err != nil {
			return nil, fmt.Errorf("read retired schedules: %w", store.Classify(err))
		}
		for i, name := range part {
			text, _ := values[i].(string)
			if r, ok := parseRetired(name, text); ok && r.Deleted == deleted {
				found[name] = r
			}
		}
	}
	return found, nil
}

// parseRetired reads the text of change.lua: three lines, "when retired release" or "when deleted who", the last run and the
// definition.
func parseRetired(name, text string) (r Retired, ok bool) {
	lines := strings.SplitN(text, "\n", 3)
	if len(lines) < 3 {
		return r, false
	}
	head := strings.SplitN(lines[0], " ", 3)
	if len(head) < 3 || head[1] != "retired" && head[1] != "deleted" {
		return r, false
	}
	at, err := strconv.ParseInt(head[0], 10, 64)
	r = Retired{Name: name, At: store.FromMs(store.ClampMs(float64(at))), By: head[2], Deleted: head[1] == "deleted", Last: lines[1], Definition: lines[2]}
	return r, err == nil
}
