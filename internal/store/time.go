package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

// Now returns the time by the clock of Redis, the only clock that decides anything: of a cluster, that of the node that holds the key. The
// client by itself asks any node for the time, also one that is away.
func Now(ctx context.Context, rdb redis.UniversalClient, key string) (t time.Time, err error) {
	cluster, ok := Plain(rdb).(*redis.ClusterClient)
	if !ok {
		t, err = rdb.Time(ctx).Result()
	} else {
		var node *redis.Client
		if node, err = cluster.MasterForKey(ctx, key); err == nil {
			t, err = node.Time(ctx).Result()
		}
		if err != nil {
			reloadState(ctx, cluster)
		}
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("read the clock of redis: %w", Classify(err))
	}
	return t.UTC(), nil
}

// PipeNow adds to a pipeline the question for the time: see [Now]. The function returns it once the pipeline was executed. For a cluster PipeNow
// asks at once, and returns the error.
func PipeNow(ctx context.Context, rdb redis.UniversalClient, key string, pipe redis.Pipeliner) (read func() time.Time, err error) {
	if _, ok := Plain(rdb).(*redis.ClusterClient); ok {
		now, err := Now(ctx, rdb, key)
		return func() time.Time { return now }, err
	}
	cmd := pipe.Time(ctx)
	return func() time.Time { return cmd.Val().UTC() }, nil
}

// Ms returns a time as the integer that Redis holds. The zero time is 0.
func Ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// lastMs is the end of the year 9999: later times cannot be written as RFC 3339, nor as JSON.
const lastMs = 253402300799999

// ClampMs returns the time that a score means, moved into the years 1970 to 9999. Another program may have written the score,
// and one entry of a list that is no time must not hide the others.
func ClampMs(score float64) int64 {
	if math.IsNaN(score) {
		return 0
	}
	return int64(max(0, min(score, lastMs)))
}

// ScoreTime returns the time that a score means: see [ClampMs].
func ScoreTime(score float64) time.Time { return time.UnixMilli(ClampMs(score)).UTC() }

// FromMs is the inverse of [Ms].
func FromMs(ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
