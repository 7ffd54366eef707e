package audit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/queue"
)

// Loss is a time of which Redis lost writes that it had answered, in a crash or a failover; or in which some instances
// still wrote to a primary that was none any more. What ran then may have run twice, or be called lost though it ran.
type Loss struct {
	// Found is when an instance noticed: the last of them, where several did.
	Found time.Time `json:"found"`
	// From is the last heartbeat of that instance that Redis still has, zero if it came back with nothing. Until is the
	// latest moment at which it may have been lost: when the instance noticed. Known is the last that is surely lost.
	From  time.Time `json:"from,omitzero"`
	Known time.Time `json:"known"`
	Until time.Time `json:"until"`
}

// Losses reads what was lost and found out since so long ago, the oldest first. Each instance reports what it was answered
// and Redis has not any more; reports that overlap are one loss.
func Losses(ctx context.Context, q *queue.Queue, since time.Duration) ([]Loss, error) {
	now, err := q.Now(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	events, err := q.Events(ctx, now.Add(-since), maxEvents)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return lossesOf(events), nil
}

func lossesOf(events []queue.Event) []Loss {
	var list []Loss
	for _, e := range events {
		if e.Kind == "lost writes" {
			list = append(list, Loss{Found: e.At, From: moment(e.Fields["kept"]), Known: moment(e.Fields["known"]), Until: e.At})
		}
	}
	return merged(list)
}

// merged makes one of losses that overlap. One of everything stays what it is.
func merged(list []Loss) []Loss {
	slices.SortStableFunc(list, func(a, b Loss) int { return a.From.Compare(b.From) })
	var out []Loss // those of everything come first
	for _, l := range list {
		if n := len(out) - 1; n >= 0 && !out[n].From.IsZero() && !l.From.After(out[n].Until) {
			out[n].Found, out[n].Until, out[n].Known = later(out[n].Found, l.Found), later(out[n].Until, l.Until), later(out[n].Known, l.Known)
			continue
		}
		out = append(out, l)
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// repeats reports whether a slot that was due at a moment, and of which a note was written at another (zero: none was),
// may have run in a time whose writes are lost besides.
func repeats(losses []Loss, due, noted time.Time) bool {
	return slices.ContainsFunc(losses, func(l Loss) bool {
		return !due.After(l.Until) && (noted.IsZero() || !noted.Before(l.From))
	})
}

// mayHaveRun reports whether a slot that was noted as missed may have run all the same: before that was noted, in a time whose
// writes are lost and in which Redis is known to have lived.
func mayHaveRun(losses []Loss, due, noted time.Time) bool {
	return slices.ContainsFunc(losses, func(l Loss) bool { return !due.After(l.Known) && !noted.Before(l.From) })
}

// moment reads unix milliseconds.
func moment(text string) time.Time {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
