package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/store"
)

// Revision is the definition of a schedule from a change on.
type Revision struct {
	// Number is the revision of its last run after the change: see [Last]. A pause raises that too, and is no revision.
	Number int64
	// Before is the number of the revision before it; 0 if none was known.
	Before int64
	// At is when it was made.
	At time.Time
	// What is the last word of the change's event: made, changed, deleted, retired, restored or reverted.
	What string
	// The actor, or the release that retired the schedule; "" if neither is known.
	Who string
	// Definition is the text of the definition; "" if it was deleted or retired, or if the definition alone is over 256 KiB.
	Definition string
}

// Revisions returns the revisions of a schedule, the newest first: at most 50, and 256 KiB of them. They are kept for
// [RetiredKept] after the schedule is gone.
func (q *Queue) Revisions(ctx context.Context, name string) ([]Revision, error) {
	text, err := q.rdb.HGet(ctx, q.keys.Revisions, name).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("read the revisions of schedule %q: %w", name, store.Classify(err))
	}
	return parseRevisions(text), nil
}

func parseRevisions(text string) (list []Revision) {
	for line := range strings.SplitSeq(text, "\n") {
		if r, ok := parseRevision(line); ok {
			list = append(list, r)
		}
	}
	return list
}

// parseRevision reads a line of change.lua: "revision before when what who", a tab, and the definition.
func parseRevision(line string) (r Revision, ok bool) {
	head, definition, ok := strings.Cut(line, "\t")
	parts := strings.SplitN(head, " ", 5)
	if !ok || len(parts) < 5 {
		return r, false
	}
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(parts[i], 10, 64); err != nil {
			return r, false
		}
	}
	r = Revision{Number: n[0], Before: n[1], At: store.FromMs(store.ClampMs(float64(n[2]))), What: parts[3], Who: parts[4], Definition: definition}
	return r, r.Number > 0
}
