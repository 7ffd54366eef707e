package queue_test

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

func (w *world) noteRuns(n int) (ids []string) {
	w.Helper()
	return w.noteInto(w.keys.History, n)
}

func (w *world) noteInto(stream string, n int) (ids []string) {
	w.Helper()
	for i := range n {
		id, err := w.rdb.XAdd(w.Context(), &redis.XAddArgs{Stream: stream, Values: []any{"runs", fmt.Sprintf("s@%d done 1 2", i+1)}}).Result()
		w.must(err)
		ids = append(ids, id)
	}
	return ids
}

// A reader that follows learns whether something is missing behind its place, and whether there is more.
func TestHistoryTail_saysWhatIsMissingAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		tail := func(after string, n int) queue.Tail[history.Entry] {
			t.Helper()
			got, err := w.q.HistoryTail(t.Context(), after, n)
			w.must(err)
			return got
		}
		if got := tail("", 5); !got.There || got.More || len(got.Items) > 0 || got.Stream.Length != 0 {
			t.Errorf("nothing there: %+v", got)
		}
		ids := w.noteRuns(10)
		if got := tail("", 4); !got.There || !got.More || len(got.Items) != 4 || got.Items[3].ID != ids[3] || got.Stream.Length != 10 {
			t.Errorf("the first: %+v", got)
		}
		if got := tail(ids[3], 6); !got.There || got.More || len(got.Items) != 6 || got.Items[0].ID != ids[4] || got.Stream.Last != ids[9] {
			t.Errorf("the rest: %+v", got)
		}
		if got := tail(ids[9], 6); !got.There || got.More || len(got.Items) != 0 {
			t.Errorf("the end: %+v", got)
		}
		w.must(rdb.XTrimMinID(t.Context(), w.keys.History, ids[5]).Err())
		if got := tail(ids[3], 2); got.There || !got.More || len(got.Items) != 2 || got.Items[0].ID != ids[5] {
			t.Errorf("behind what is gone: %+v", got)
		}
		for id, want := range map[string]string{ids[4]: "", ids[5]: ids[5], "9999999999999-0": ids[9]} {
			if got, err := w.q.HistoryUpTo(t.Context(), id); err != nil || got != want {
				t.Errorf("up to %s: %q, %v", id, got, err)
			}
		}
	})
}

// The trimmed entries are counted from the oldest: later entries change nothing, and a stream with another beginning stays whole.
func TestTrimHistory_removesOnlyWhatWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), queue.Caps{History: 100})
	w.noteRuns(1000)
	seen, err := w.q.HistoryTail(t.Context(), "", 0)
	w.must(err)
	w.noteRuns(500)
	if n, err := w.q.TrimHistory(t.Context(), seen.Stream); err != nil || n < 700 || n > 900 {
		t.Errorf("%d trimmed, %v", n, err)
	}
	if n := w.historyLen(); n < 600 {
		t.Errorf("%d are left of what stays and what was added since", n)
	}
	before := w.historyLen()
	if n, err := w.q.TrimHistory(t.Context(), seen.Stream); err != nil || n != 0 || w.historyLen() != before {
		t.Errorf("with another beginning: %d trimmed, %v", n, err)
	}
}

// Archived entries stay for a reader that says that it needs them, up to the cap of the history.
func TestTrimRuns_keepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	for _, tt := range []struct {
		needed      int // the index of an entry; -1: nothing is needed
		cap         int
		least, most int64
	}{
		{-1, 0, 100, 300}, {600, 0, 400, 600}, {0, 0, 1000, 1000}, {950, 0, 100, 300}, {0, 500, 500, 700}, {950, 500, 100, 700},
	} {
		w := newWorld(t, rdb, queue.Caps{History: tt.cap})
		needed, ids := "", w.noteInto(w.keys.Runs, 1000)
		if tt.needed >= 0 {
			needed = ids[tt.needed]
		}
		seen, err := w.q.RunsTail(t.Context(), "", 0)
		w.must(err)
		_, err = w.q.TrimRuns(t.Context(), seen.Stream, needed)
		w.must(err)
		if n := rdb.XLen(t.Context(), w.keys.Runs).Val(); n < tt.least || n > tt.most {
			t.Errorf("%+v: %d are left", tt, n)
		}
	}
}

func (w *world) historyLen() int64 {
	w.Helper()
	n, err := w.rdb.XLen(w.Context(), w.keys.History).Result()
	w.must(err)
	return n
}

// Changed schedules come page by page, each once, also those that one call changed together.
func TestChangedSchedules_comePageByPage(t *testing.T) {
	t.Parallel()
	testredis.Each(t, func(t *testing.T, rdb *redis.Client) {
		w := newWorld(t, rdb)
		for i := range 25 {
			w.must(rdb.ZAdd(t.Context(), w.keys.Changed, redis.Z{Score: float64(100 + i/5), Member: fmt.Sprintf("s%02d", i)}).Err())
		}
		w.must(rdb.ZAdd(t.Context(), w.keys.Changed, redis.Z{Score: 1e18, Member: "damaged"}, redis.Z{Score: 101, Member: queue.Mended}).Err())
		seen := map[string]int{}
		version := int64(0)
		for range 25 {
			names, next, err := w.q.ChangedSchedules(t.Context(), version, 7)
			w.must(err)
			for _, name := range names {
				seen[name]++
			}
			if next == version {
				break
			}
			version = next
		}
		if len(seen) != 25 || version != 104 {
			t.Errorf("%d schedules up to %d", len(seen), version)
		}
		for name, n := range seen {
			if n != 1 {
				t.Errorf("%s came %d times", name, n)
			}
		}
	})
}
