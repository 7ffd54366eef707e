package queue

import (
	"context"
	"fmt"

	"github.com/onbeat/onbeat/internal/store"
)

var (
	recordsScript = store.NewScript("records", source("records")).Fleeting()
	existScript   = store.NewScript("exist", source("exist")).Fleeting()
)

const (
	// PageBytes is how many bytes of records make a page full.
	PageBytes = 8 << 20
	// recordsBytes is how many bytes of records make one reply full: Redis serves nobody else while it writes a reply.
	recordsBytes = 1 << 20
	// scanBytes is how many bytes of records List reads for one page, of those that no filter takes too.
	scanBytes = 64 << 20
)

// records reads the records of the first of some tasks: of as many as one reply takes, and of at least one. It reads the records of
// [MaxBatch] small tasks in one round trip. The record of a task that is gone is nil. The caller goes on with the tasks after these.
func (q *Queue) records(ctx context.Context, ids []string) ([]any, error) {
	v, err := recordsScript.Run(ctx, q.rdb, []string{q.keys.Tasks}, idArgs(ids, recordsBytes))
	if err != nil {
		return nil, fmt.Errorf("read records: %w", err)
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > len(ids) {
		return nil, fmt.Errorf("read records: Redis answered %T", v)
	}
	return list, nil
}

// idArgs are the arguments of a script: those before, and then the first [MaxBatch] IDs.
func idArgs(ids []string, before ...any) []any {
	args := before
	for _, id := range ids[:min(len(ids), MaxBatch)] {
		args = append(args, id)
	}
	return args
}

type holdKey struct{}

// Holding returns a context in which hold is told how many bytes of records a page has, each time before it has more. If hold returns
// an error, the list ends with it.
func Holding(ctx context.Context, hold func(bytes int) error) context.Context {
	return context.WithValue(ctx, holdKey{}, hold)
}

// holds tells the caller of a list that a page has this many bytes.
func holds(ctx context.Context, bytes int) error {
	if hold, ok := ctx.Value(holdKey{}).(func(int) error); ok {
		return hold(bytes)
	}
	return nil
}
