package producer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/task"
)

// over reports whether an answer of Redis says that the term is over.
func over(err error) bool {
	return errors.Is(err, queue.ErrNotLeader) || errors.Is(err, queue.ErrFenced)
}

// special reports whether the content of a call caused its error, and not the term, the connection or the state of Redis.
func special(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !over(err) && !store.Retryable(err) && !errors.Is(err, task.ErrFull) &&
		!errors.Is(err, task.ErrDenied) && !errors.Is(err, store.ErrWrongType) && !errors.Is(err, context.Canceled)
}

// send is [queue.Queue.Advance] for steps of which Redis may refuse one because of its content. Send sets that step aside, so
// that it delays no other schedule. The step counts as moved.
func (t *term) send(ctx context.Context, steps []queue.Step) (now time.Time, dropped int, moved []int, err error) {
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
		t.log.Error().Err(err).Str("schedule", steps[0].Name).Msg("redis refuses a schedule: leaving it alone for a while")
		if t.aside == nil {
			t.aside = map[string]string{}
		}
		t.aside[steps[0].Name] = steps[0].Expect
		t.refused = true
		t.progress.failed(err)
		return t.clock.Now(), 0, []int{0}, nil
	}
	moved = nil // a step that was made before the error is stale by now, and counts as moved below
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

// isAside reports whether a schedule is left alone for now: it was set aside and has not changed since.
func (t *term) isAside(st queue.Stored) bool {
	last, ok := t.aside[st.Name]
	if ok && last != st.Last {
		delete(t.aside, st.Name)
	}
	return ok && last == st.Last
}

// retryAside takes back what was set aside, because it may pass now.
func (t *term) retryAside(ctx context.Context) error {
	was := t.aside
	t.refused = t.refused && len(was) > 0 // else the refused one is gone, or was changed
	t.aside = nil
	err := t.reload(ctx, slices.Sorted(maps.Keys(was)))
	if err != nil {
		t.aside = was // the next try takes back the same
	}
	return err
}
