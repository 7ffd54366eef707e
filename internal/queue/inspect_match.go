package queue

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/task"
)

// mayBe reports from the ID alone whether a task may belong to the schedule that is asked for. The ID of a slot is
// name@ms; the ID of a run by hand begins with name!.
func (o *ListOptions) mayBe(id string) bool {
	if o.Backfill && !strings.HasSuffix(id, BackfillMark) {
		return false
	}
	if o.Schedule == "" {
		return true
	}
	end := strings.IndexAny(id, "@!") // names have neither
	return end >= 0 && like(id[:end], o.Schedule)
}

// isOf reports from the ID alone whether a task is of a schedule: a name may go on behind that of another one, its slots may not.
func isOf(schedule, id string) bool {
	rest, ok := strings.CutPrefix(id, schedule)
	return ok && rest != "" && (rest[0] == '@' || rest[0] == '!') && !strings.ContainsAny(rest[1:], "@!")
}

// deadLooked is how many dead tasks [Queue.DeadOf] looks at, and deadChunk at how many in one command.
const (
	deadLooked = 10_000
	deadChunk  = 1000
)

// DeadOf counts the dead tasks of a schedule among the 10,000 that died last, without their records, in one round trip. It reports whether
// there are older ones.
func (q *Queue) DeadOf(ctx context.Context, schedule string) (n int64, more bool, err error) {
	pipe := q.rdb.Pipeline()
	all := pipe.ZCard(ctx, q.keys.Dead)
	var parts []*redis.StringSliceCmd
	for from := int64(0); from < deadLooked; from += deadChunk {
		parts = append(parts, pipe.ZRange(ctx, q.keys.Dead, -from-deadChunk, -from-1))
	}
	if err := exec(ctx, pipe); err != nil {
		return 0, false, fmt.Errorf("count the dead tasks of %q: %w", schedule, err)
	}
	for _, part := range parts {
		for _, id := range part.Val() {
			if isOf(schedule, id) {
				n++
			}
		}
	}
	return n, all.Val() > deadLooked, nil
}

func (o *ListOptions) ofLane(l Lane) bool {
	return (o.Queue == "" || like(l.Queue, o.Queue)) && (o.Type == "" || like(l.Type, o.Type))
}

func (o *ListOptions) match(t *task.Task) bool {
	if o.later() && (t.Attempts > 0) != (o.Part == Retried) {
		return false
	}
	return (!o.Backfill || t.Schedule != "" && strings.HasSuffix(t.ID, BackfillMark)) && o.ofLane(LaneOf(t)) && (o.Schedule == "" || t.Schedule != "" && like(t.Schedule, o.Schedule)) && (o.Key == "" || o.Key == t.Key) && o.failed(t)
}

// failed reports whether the last error of a task is the one that is asked for.
func (o *ListOptions) failed(t *task.Task) bool {
	return o.Error == "" || len(t.Failures) > 0 && like(task.Cause(t.LastError()), o.cause)
}

// like reports whether a text is that of a pattern, in which * stands for any text.
func like(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return text == pattern
	}
	text, ok := strings.CutPrefix(text, parts[0])
	for i := 1; ok && i < last; i++ {
		_, text, ok = strings.Cut(text, parts[i])
	}
	return ok && strings.HasSuffix(text, parts[last])
}
