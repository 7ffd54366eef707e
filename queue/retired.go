package queue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/store"
)

// RetiredKept is how long a retired schedule's record is kept. If its release is in force again by then, the schedule goes
// on as it was.
const RetiredKept = 30 * 24 * time.Hour

// Retired is a retired schedule, as it was when a newer release did not declare it any more.
type Retired struct {
	Name       string
	At         time.Time
	By         string // the release that retired it
	Definition string
	Last       string
}

// Retired returns, by name, those of the named schedules that are retired now. It leaves out a schedule that was made,
// changed or deleted by hand since.
func (q *Queue) Retired(ctx context.Context, names []string) (map[string]Retired, error) {
	found := map[string]Retired{}
	var list []string
	versions := map[string]int64{}
	for from := 0; from < len(names); from += MaxBatch {
		part := names[from:min(from+MaxBatch, len(names))]
		values, err := q.rdb.HMGet(ctx, q.keys.Retired, part...).Result()
		if err != nil {
			return nil, fmt.Errorf("read retired schedules: %w", store.Classify(err))
		}
		for i, name := range part {
			text, _ := values[i].(string)
			if r, version, ok := parseRetired(name, text); ok {
				found[name], versions[name] = r, version
				list = append(list, name)
			}
		}
	}
	// An older release, which knows no retired schedules, may have made one of them again. Then its version is another one.
	changed, err := q.ChangedAt(ctx, list)
	if err != nil {
		return nil, err
	}
	for i, name := range list {
		if changed[i] != 0 && changed[i] != versions[name] {
			delete(found, name)
		}
	}
	return found, nil
}

// parseRetired reads the text of change.lua: three lines, "when version release", the last run and the definition.
func parseRetired(name, text string) (r Retired, version int64, ok bool) {
	lines := strings.SplitN(text, "\n", 3)
	if len(lines) < 3 {
		return r, 0, false
	}
	head := strings.SplitN(lines[0], " ", 3)
	if len(head) < 3 {
		return r, 0, false
	}
	at, err1 := strconv.ParseInt(head[0], 10, 64)
	version, err2 := strconv.ParseInt(head[1], 10, 64)
	r = Retired{Name: name, At: store.FromMs(at), By: head[2], Last: lines[1], Definition: lines[2]}
	return r, version, err1 == nil && err2 == nil
}
