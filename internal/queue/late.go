package queue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

// Late is a task that waits in a lane.
type Late struct {
	ID  string
	Due time.Time
}

// Late returns tasks of lanes that were due by a moment and are not claimed: of each lane the oldest, at most n.
func (q *Queue) Late(ctx context.Context, lanes []Lane, by time.Time, n int) ([]Late, error) {
	var list []Late
	for part := range slices.Chunk(lanes, MaxBatch) {
		pipe := q.rdb.Pipeline()
		asked := make([]*redis.ZSliceCmd, len(part))
		for i, l := range part {
			asked[i] = pipe.ZRangeByScoreWithScores(ctx, q.keys.Due(l), &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(by.UnixMilli(), 10), Count: int64(n)})
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("look for tasks that wait: %w", store.Classify(err))
		}
		for _, c := range asked {
			for _, z := range c.Val() {
				id, _ := z.Member.(string)
				list = append(list, Late{id, store.FromMs(store.ClampMs(z.Score))})
			}
		}
	}
	return list, nil
}
