package queue_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/store"
	"github.com/onbeat/onbeat/internal/testredis"
)

// fill adds entries of some bytes each to a stream, and returns the ID of the last.
func (w *world) fill(key string, entries, bytes int) (last string) {
	w.Helper()
	for done := 0; done < entries; done += 500 {
		pipe := w.rdb.Pipeline()
		for range min(500, entries-done) {
			pipe.XAdd(w.Context(), &redis.XAddArgs{Stream: key, Values: []any{"tasks", strings.Repeat("x", bytes)}})
		}
		cmds, err := pipe.Exec(w.Context())
		w.must(err)
		last = cmds[len(cmds)-1].(*redis.StringCmd).Val()
	}
	return last
}

// takes is how many bytes the two streams take.
func (w *world) takes() (n int64) {
	w.Helper()
	for _, key := range []string{w.keys.History, w.keys.Runs} {
		if bytes, err := w.rdb.MemoryUsage(w.Context(), key, 0).Result(); err == nil {
			n += bytes
		}
	}
	return n
}

const mib = 1 << 20

// Promise 10: the entries that Redis keeps for an archive are bounded by bytes, whatever their size. The oldest entries of the
// larger stream leave first.
func TestPromise10_theBufferOfAnArchiveIsBoundedByBytes(t *testing.T) {
	t.Parallel()
	type some struct{ entries, bytes int }
	for name, c := range map[string]struct {
		history, runs []some
		whole         bool // the history is small, and stays
		left          int64
	}{
		"small":             {[]some{{100, 100}}, []some{{40_000, 100}}, true, 5_000},
		"large":             {[]some{{100, 100}}, []some{{1_500, 5_000}}, true, 180},
		"huge":              {[]some{{100, 100}}, []some{{30, 1 << 18}}, true, 102},
		"small, then large": {[]some{{100, 100}}, []some{{2_000, 50}, {500, 10_000}}, true, 180},
		"history":           {[]some{{3_000, 2_000}}, []some{{200, 100}}, false, 600},
		"both":              {[]some{{3_000, 2_000}}, []some{{3_000, 2_000}}, false, 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, testredis.Real(t), queue.Caps{Buffer: mib})
			last := ""
			for _, x := range c.history {
				w.fill(w.keys.History, x.entries, x.bytes)
			}
			for _, x := range c.runs {
				last = w.fill(w.keys.Runs, x.entries, x.bytes)
			}
			history, entries := w.count(w.keys.History), w.count(w.keys.History)+w.count(w.keys.Runs)
			removed, left, err := w.q.TrimToBuffer(t.Context())
			w.must(err)
			if now := w.takes(); now > mib+mib/100 || now < mib/2 || left.Bytes != now || left.Assumed != nil {
				t.Errorf("%d bytes are left, reported as %+v", now, left)
			}
			kept := w.count(w.keys.History) + w.count(w.keys.Runs)
			if removed == 0 || kept != entries-removed || kept != left.Entries || kept < c.left {
				t.Errorf("%d of %d entries are kept, %d removed, reported as %+v", kept, entries, removed, left)
			}
			if c.whole && w.count(w.keys.History) != history {
				t.Errorf("the history has %d of %d entries", w.count(w.keys.History), history)
			}
			if id, err := w.q.RunsUpTo(t.Context(), "+"); err != nil || id != last {
				t.Errorf("the newest is %q, %v; want %q", id, err, last)
			}
			if removed, _, err := w.q.TrimToBuffer(t.Context()); err != nil || removed != 0 {
				t.Errorf("once more: %d, %v", removed, err)
			}
		})
	}
}

// Without a bound nothing is removed.
func TestTrimToBuffer_withoutABound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t))
	w.fill(w.keys.Runs, 500, 5_000)
	if removed, left, err := w.q.TrimToBuffer(t.Context()); err != nil || removed != 0 || left.Entries != 500 {
		t.Errorf("%d, %+v, %v", removed, left, err)
	}
}

// A user who may not ask for the size has each entry count as 512 bytes.
func TestTrimToBuffer_withoutTheRightToWeigh(t *testing.T) {
	t.Parallel()
	admin := testredis.Real(t)
	w := newWorld(t, admin)
	w.fill(w.keys.Runs, 5_000, 10)
	p := queue.Partition{Namespace: w.q.Namespace()}
	as := func(rights ...string) *queue.Queue {
		rules := append(strings.Fields(queue.ACL(queue.AsInstance, p, false)), rights...)
		q, err := queue.New(testredis.User(t, admin, rules), p, queue.Caps{Buffer: mib})
		w.must(err)
		return q
	}
	if removed, left, err := as().TrimToBuffer(t.Context()); removed != 0 || !store.LacksRight(err) || left.Bytes != 5_000*512 {
		t.Errorf("without both rights: %d, %+v, %v", removed, left, err)
	}
	if removed, _, err := as("+memory|usage").TrimToBuffer(t.Context()); removed != 0 || err != nil {
		t.Errorf("with the right to weigh: %d, %v", removed, err)
	}
	removed, left, err := as("+xtrim").TrimToBuffer(t.Context())
	if err != nil || removed < 2_900 || left.Entries < 2_000 || left.Entries > 2_200 || !store.LacksRight(left.Assumed) {
		t.Errorf("with the right to trim: %d, %+v, %v", removed, left, err)
	}
}
