package store

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"
)

// Now returns the time by the clock of Redis, the only clock that decides anything.
func Now(ctx context.Context, rdb redis.Cmdable) (time.Time, error) {
	t, err := rdb.Time(ctx).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("read the clock of redis: %w", Classify(err))
	}
	return t.UTC(), nil
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
