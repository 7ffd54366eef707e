package archiver_test

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/archiver"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

const patience = 3 * time.Minute

// world is a namespace with an archive. Its methods fail the test if they fail.
type world struct {
	testing.TB
	rdb   *redis.Client
	q     *queue.Queue
	keys  queue.Keys
	ns    string
	to    archive.Opener
	log   *lines
	told  *told
	start time.Time
	next  int
}

func newWorld(t testing.TB, rdb *redis.Client, url string, caps queue.Caps) *world {
	t.Helper()
	p := queue.Partition{Namespace: testredis.Namespace(t)}
	w := &world{TB: t, rdb: rdb, keys: p.Keys(), ns: p.Namespace, to: sqlarchive.Config{URL: url}, log: &lines{}, told: &told{}, start: time.Now().Add(-time.Hour)}
	if caps.Archive == 0 {
		caps.Archive = 1_000_000
	}
	var err error
	w.q, err = queue.New(rdb, p, caps)
	w.must(err)
	return w
}

// sqlite is the URL of a database of the test's own.
func sqlite(t testing.TB) string {
	t.Helper()
	return "sqlite://" + filepath.Join(t.TempDir(), "archive.db")
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// follow archives until stop, or the end of the test.
func (w *world) follow(instance string) (stop func()) {
	w.Helper()
	source, err := archive.NewSource(w.to, w.ns, zerolog.Nop())
	w.must(err)
	a := archiver.New(w.q, source, archiver.Config{Every: 10 * time.Millisecond, Observer: w.told, Log: zerolog.New(w.log)})
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { a.Follow(ctx, instance) })
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			work.Wait()
			w.must(source.Close())
		})
	}
	w.Cleanup(stop)
	return stop
}

// note adds entries to the history, of one run each, and returns their IDs.
func (w *world) note(n int) (ids []string) {
	w.Helper()
	return w.add(w.keys.History, "runs", n)
}

func (w *world) add(stream, field string, n int) (ids []string) {
	w.Helper()
	pipe := w.rdb.Pipeline()
	for range n {
		w.next++
		pipe.XAdd(w.Context(), &redis.XAddArgs{Stream: stream, Values: map[string]any{
			field: fmt.Sprintf("%s done 1 %d", w.task(w.next), w.slot(w.next)+5), "gen": "7", "instance": "i", "release": "v1",
		}})
	}
	cmds, err := pipe.Exec(w.Context())
	w.must(err)
	for _, c := range cmds {
		ids = append(ids, c.(*redis.StringCmd).Val())
	}
	return ids
}

// slot is when the run with a number was due, and task its ID.
func (w *world) slot(n int) int64  { return w.start.UnixMilli() + int64(n) }
func (w *world) task(n int) string { return fmt.Sprintf("beat@%d", w.slot(n)) }

// archive opens the archive to look into it.
func (w *world) archive() archive.Archive {
	w.Helper()
	a, err := w.to.Open(w.Context(), w.ns, zerolog.Nop())
	w.must(err)
	w.Cleanup(func() { _ = a.Close() })
	return a
}

// archived returns the IDs of the archived history.
func (w *world) archived(a archive.Archive) (ids []string) {
	w.Helper()
	w.must(a.History(w.Context(), time.Time{}, func(e history.Entry) error {
		ids = append(ids, e.ID)
		return nil
	}))
	return ids
}

// eventually waits until the archive has these entries, and no others.
func (w *world) eventually(a archive.Archive, want []string) {
	w.Helper()
	w.Cleanup(func() {
		if w.Failed() {
			w.Logf("the archiver's log:\n%s", &w.log.text)
		}
	})
	testredis.Eventually(w, patience, func() error {
		at, err := a.Position(w.Context())
		if err == nil && (len(want) == 0 || at.History != want[len(want)-1]) {
			err = fmt.Errorf("archived up to %q", at.History)
		}
		return err
	}, "all is archived")
	if got := w.archived(a); strings.Join(got, " ") != strings.Join(want, " ") {
		w.Fatalf("archived are %d entries, want %d\n%v\n%v", len(got), len(want), got, want)
	}
}

// told notes what an archiver tells.
type told struct {
	mu     sync.Mutex
	behind int64
	lost   int64
}

func (o *told) ArchiveBehind(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.behind = n
}

func (o *told) ArchiveLost(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += n
}

func (o *told) now() (behind, lost int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.behind, o.lost
}

// lines is a log.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(line string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), line)
}

// databases runs a test on both.
func databases(t *testing.T, test func(t *testing.T, url string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, sqlite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, testpostgres.Database(t))
	})
}
