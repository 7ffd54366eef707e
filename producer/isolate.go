package producer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/queue"
	"github.com/onbeat/onbeat/store"
)

// over reports whether a term is over, by an answer of Redis.
func over(err error) bool {
	return errors.Is(err, queue.ErrNotLeader) || errors.Is(err, queue.ErrFenced)
}

// special reports whether an error lies in what was sent, rather than in the term, the way to Redis or its state.
func special(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !over(err) && !store.Retryable(err) && !errors.Is(err, store.ErrFull) &&
		!errors.Is(err, store.ErrDenied) && !errors.Is(err, store.ErrWrongType) && !errors.Is(err, context.Canceled)
}

// send is [queue.Queue.Advance] for steps of which one may be refused for what it is: that one is set aside, and holds up
// no other schedule. It counts as moved.
func (t *tenure) send(ctx context.Context, steps []queue.Step) (now time.Time, dropped int, moved []int, err error) {
	now, dropped, moved, err = t.q.Advance(ctx, t.term, steps)
	switch {
	case err == nil:
		if len(moved) < len(steps) {
			t.refused = false
			t.progress.made()
		}
		return now, dropped, moved, nil
	case !special(ctx, err):
		return now, dropped, moved, err
	case len(steps) == 1:
		t.log.Error().Err(err).Str("schedule", steps[0].Name).Msg("a schedule cannot be pushed, and is left for a while")
		if t.aside == nil {
			t.aside = map[string]string{}
		}
		t.aside[steps[0].Name] = steps[0].Expect
		t.refused = true
		t.progress.failed(err)
		return t.clock.Now(), 0, []int{0}, nil
	}
	moved = nil // what was done before the error has moved since
	for _, part := range [][2]int{{0, len(steps) / 2}, {len(steps) / 2, len(steps)}} {
		at, n, again, err := t.send(ctx, steps[part[0]:part[1]])
		if err != nil {
			return now, dropped, moved, err
		}
		now, dropped = at, dropped+n
		for _, i := range again {
			moved = append(moved, part[0]+i)
		}
	}
	return now, dropped, moved, nil
}

// isAside reports whether a schedule is left alone for now: one that was set aside, and is as it was.
func (t *tenure) isAside(st queue.Stored) bool {
	last, ok := t.aside[st.Name]
	if ok && last != st.Last {
		delete(t.aside, st.Name)
	}
	return ok && last == st.Last
}

// retryAside takes back what was set aside: it may pass now.
func (t *tenure) retryAside(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(t.aside))
	clear(t.aside)
	return t.reload(ctx, names)
}
