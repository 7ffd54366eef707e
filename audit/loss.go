package audit

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/queue"
)

// Loss is a time of which Redis lost writes that it had answered, in a crash or a failover. What ran then may have run
// twice without a trace, or be called lost though it ran.
type Loss struct {
	// Found is when an instance noticed.
	Found time.Time `json:"found"`
	// From is the last heartbeat that Redis still has, zero if it came back with nothing. Until is when it lived at least.
	From  time.Time `json:"from,omitzero"`
	Until time.Time `json:"until"`
}

// Losses reads what was lost and found out since so long ago, the oldest first.
func Losses(ctx context.Context, q *queue.Queue, since time.Duration) ([]Loss, error) {
	now, err := q.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	events, err := q.Events(ctx, now.Add(-since), maxEvents)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	var list []Loss
	for _, e := range events {
		if e.Kind == "lost writes" {
			list = append(list, Loss{Found: e.At, From: moment(e.Fields["kept"]), Until: moment(e.Fields["known"])})
		}
	}
	return list, nil
}

// moment reads unix milliseconds.
func moment(text string) time.Time {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
