package queue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/onbeat/onbeat/store"
)

// RetiredKept is how long what a retired schedule was is kept: when its release is in force again by then, it goes on
// as it was.
const RetiredKept = 30 * 24 * time.Hour

// Retired is a schedule that a release no longer declared, as it was then.
type Retired struct {
	Name       string
	At         time.Time
	By         string // the release
	Definition string
	Last       string
}

// Retired reads what schedules were that are retired now, by name. One that was made, changed or deleted by hand since is
// not among them.
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
	// A program that knows of no retired schedules may have made one anew: of that its version tells.
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

// parseRetired reads what change.lua wrote: "when version release", last run and definition, a line each.
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
