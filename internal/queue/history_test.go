package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A reader that follows the history from a position meets each entry once, in order, over pages and while it grows. Read
// backwards, the entries are the same.
func TestHistory_isFollowedFromAPosition(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		const most = 1203 // more than two pages
		written := 0
		write := func(n int) {
			pipe := rdb.Pipeline()
			for range n {
				written++
				pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: w.keys.History, Values: []any{"runs", fmt.Sprintf("s@%d done 1 5", written)}})
			}
			_, err := pipe.Exec(t.Context())
			w.must(err)
		}
		var forward []string
		at := ""
		follow := func() {
			w.must(w.q.HistoryAfter(t.Context(), at, func(e history.Entry) error {
				at = e.ID
				forward = append(forward, e.Notes[0].TaskID)
				return nil
			}))
		}
		follow() // of nothing
		for _, n := range []int{1, 0, most - 2, 1} {
			write(n)
			follow()
		}
		var backward []string
		w.must(w.q.HistoryBefore(t.Context(), "0-0", func(e history.Entry) bool {
			t.Errorf("before all: %+v", e)
			return true
		}))
		w.must(w.q.HistoryBefore(t.Context(), "", func(e history.Entry) bool {
			backward = append(backward, e.Notes[0].TaskID)
			return len(backward) < most
		}))
		if len(forward) != most || len(backward) != most {
			t.Fatalf("%d forward, %d backward, want %d", len(forward), len(backward), most)
		}
		for i, id := range forward {
			if want := fmt.Sprintf("s@%d", i+1); id != want || backward[most-1-i] != want {
				t.Fatalf("entry %d: %s forward, %s backward, want %s", i, id, backward[most-1-i], want)
			}
		}
	})
}

// Entries are read a few at a time, because they may be large, but all of them are read.
func TestRuns_areReadOverPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), archived)
	const entries, size = 130, 100 << 10
	facts := "job default 0 " + strings.Repeat("x", size)
	for i := range entries {
		w.must(w.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.keys.Runs, Values: []any{"tasks", fmt.Sprintf("t%d done 1 5", i), "facts", facts}}).Err())
		w.must(w.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.keys.History, Values: []any{"runs", fmt.Sprintf("s@%d done 1 5", i), "facts", facts}}).Err())
	}
	n := 0
	count := func(e history.Entry) error {
		if want := fmt.Sprint(n); !strings.HasSuffix(e.Notes[0].TaskID[1:], want) || len(e.Notes[0].Output) != size {
			t.Fatalf("entry %d is %.80v", n, e.Notes[0])
		}
		n++
		return nil
	}
	w.must(w.q.RunsAfter(t.Context(), "", count))
	same(t, "runs", n, entries)
	n = 0
	w.must(w.q.HistoryAfter(t.Context(), "", count))
	same(t, "slots", n, entries)
	n = 0
	w.must(w.q.HistoryBefore(t.Context(), "", func(history.Entry) bool { n++; return true }))
	same(t, "slots backwards", n, entries)
}
