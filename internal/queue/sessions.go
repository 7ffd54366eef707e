package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

// sessionsCap is how many sessions a holder may have. The oldest leave first.
const sessionsCap = 1_000

// BeginSession notes a session of the holder of a token until its end.
func (q *Queue) BeginSession(ctx context.Context, holder, id string, end time.Time) error {
	key := q.keys.Sessions(holder)
	pipe := q.rdb.Pipeline()
	pipe.ZAdd(ctx, key, redis.Z{Score: float64(end.UnixMilli()), Member: id})
	pipe.ZRemRangeByRank(ctx, key, 0, -sessionsCap-1)
	pipe.PExpire(ctx, key, time.Until(end)) // as long as the one that ends last
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("begin a session: %w", store.Classify(err))
	}
	return nil
}

// HasSession reports whether a session is noted. It does not look at its end.
func (q *Queue) HasSession(ctx context.Context, holder, id string) (bool, error) {
	err := q.rdb.ZScore(ctx, q.keys.Sessions(holder), id).Err()
	if err != nil && !errors.Is(err, redis.Nil) {
		return false, fmt.Errorf("look for a session: %w", store.Classify(err))
	}
	return err == nil, nil
}

// EndSession forgets a session.
func (q *Queue) EndSession(ctx context.Context, holder, id string) error {
	if err := q.rdb.ZRem(ctx, q.keys.Sessions(holder), id).Err(); err != nil {
		return fmt.Errorf("end a session: %w", store.Classify(err))
	}
	return nil
}
