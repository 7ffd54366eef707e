package archiver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

// large adds entries of 4 KB to a stream, and returns their IDs.
func (w *world) large(stream, field string, n int) (ids []string) {
	w.Helper()
	pipe := w.rdb.Pipeline()
	for range n {
		w.next++
		pipe.XAdd(w.Context(), &redis.XAddArgs{Stream: stream, Values: map[string]any{
			field: fmt.Sprintf("%s done 1 %d", w.task(w.next), w.slot(w.next)+5), "more": strings.Repeat("x", 4_000), "instance": "i", "release": "v1",
		}})
	}
	cmds, err := pipe.Exec(w.Context())
	w.must(err)
	for _, c := range cmds {
		ids = append(ids, c.(*redis.StringCmd).Val())
	}
	return ids
}

// While the database is away, Redis keeps no more bytes than the buffer has. The entries that Redis dropped are counted when the
// database is back.
func TestPromise10_aDatabaseThatIsAwayFillsNoMoreThanTheBuffer(t *testing.T) {
	t.Parallel()
	server := testpostgres.Private(t)
	w := newWorld(t, testredis.Real(t), server.Database(), queue.Caps{Buffer: 1 << 20})
	a := w.archive()
	w.large(w.keys.Runs, "tasks", 10)
	want := w.note(10)
	w.follow("a")
	w.eventually(a, want)
	server.Kill()
	w.large(w.keys.Runs, "tasks", 1000)
	want = append(want, w.note(10)...)
	testredis.Eventually(t, patience, func() error {
		bytes, err := w.rdb.MemoryUsage(t.Context(), w.keys.Runs, 0).Result()
		if err == nil && bytes > 1<<20 {
			err = fmt.Errorf("redis keeps %d bytes", bytes)
		}
		return err
	}, "redis keeps no more than the buffer has")
	info, err := w.rdb.XInfoStream(t.Context(), w.keys.Runs).Result()
	w.must(err)
	dropped, told := 1000-info.Length, 1000-info.Length
	if info.EntriesAdded > 0 {
		testredis.Eventually(t, patience, func() bool { return w.log.count("archive.buffer is full") == 1 }, "the log says so")
	} else { // Redis 6.2 does not count what it drops
		dropped, told = 0, 1
	}
	server.Start()
	w.eventually(a, want)
	testredis.Eventually(t, patience, func() bool { _, lost := w.told.now(); return lost == told }, "what was dropped is counted")
	list, err := a.Lost(t.Context(), time.Time{})
	if err != nil || len(list) != 1 || list[0].Stream != "runs" || list[0].Entries != dropped {
		t.Errorf("%+v, %v; %d were dropped", list, err, dropped)
	}
}

// An entry that is dropped after it was archived is no loss, and the log does not call it a loss.
func TestBuffer_dropsInSilenceWhatIsArchived(t *testing.T) {
	t.Parallel()
	w := newWorld(t, testredis.Real(t), sqlite(t), queue.Caps{Buffer: 1 << 20})
	a := w.archive()
	w.follow("a")
	var want []string
	for range 4 {
		want = append(want, w.large(w.keys.History, "runs", 100)...)
		w.eventually(a, want)
	}
	testredis.Eventually(t, patience, func() bool { return w.rdb.XLen(t.Context(), w.keys.History).Val() < 300 }, "the oldest leave")
	if _, lost := w.told.now(); lost != 0 || w.log.count("archive.buffer is full") > 0 {
		t.Errorf("%d lost\n%s", lost, &w.log.text)
	}
}
