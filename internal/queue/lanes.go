package queue

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/wording"
)

// MostLanes is how many lanes a namespace may have. One more is refused; see enqueue.lua.
const MostLanes = 2_000

// longestMaker is the most bytes of the name of one who made a lane.
const longestMaker = 100

// MakersOfLanes counts the lanes in use by those who made them: the actor of [By], "schedules", "outbox", or "" for callers without a
// name.
func (q *Queue) MakersOfLanes(ctx context.Context) (lanes map[string]int, err error) {
	values, err := q.rdb.HVals(ctx, q.keys.Lanes).Result()
	if err != nil {
		return nil, fmt.Errorf("count lanes: %w", store.Classify(err))
	}
	lanes = map[string]int{}
	for _, v := range values {
		_, by, _ := strings.Cut(v, " ")
		lanes[by]++
	}
	return lanes, nil
}

// MostOf names the one who made the most lanes, such as `1,990 of them by "shop"`.
func MostOf(lanes map[string]int) string {
	who, most := "", 0
	for by, n := range lanes {
		if n > most || n == most && by < who {
			who, most = by, n
		}
	}
	if who == "" {
		return fmt.Sprintf("%d of them by callers without a name", most)
	}
	return fmt.Sprintf("%d of them by %q", most, wording.Cut(who, longestMaker))
}

// makers remembers for a while who made the most lanes, as those who are refused ask again and again.
type makers struct {
	mu   sync.Mutex
	text string
	at   time.Time
}

// most returns the words that a refusal ends with. A caller that may not read them all gets none.
func (m *makers) most(ctx context.Context, q *Queue) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.at) < 5*time.Second {
		return m.text
	}
	m.text, m.at = "", time.Now()
	if lanes, err := q.MakersOfLanes(ctx); err == nil {
		m.text = ", " + MostOf(lanes)
	}
	return m.text
}
