package past_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/past"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
	_ "github.com/onbeat/onbeat/postgres"
)

// world is a namespace whose archive a test fills by hand. Its methods fail the test if they fail.
type world struct {
	testing.TB
	rdb  *redis.Client
	q    *queue.Queue
	keys queue.Keys
	a    archive.Archive
	p    *past.Past
	ids  []string // of the history
}

func newWorld(t testing.TB) *world {
	t.Helper()
	part := queue.Partition{Namespace: testredis.Namespace(t)}
	w := &world{TB: t, rdb: testredis.Real(t), keys: part.Keys()}
	var err error
	w.q, err = queue.New(w.rdb, part, queue.Caps{})
	w.must(err)
	file := sqlarchive.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "archive.db")}
	w.a, err = file.Open(t.Context(), part.Namespace, zerolog.Nop())
	w.must(err)
	source, err := archive.NewSource(file, part.Namespace, zerolog.Nop())
	w.must(err)
	t.Cleanup(func() {
		_ = source.Close()
		_ = w.a.Close()
	})
	w.p = past.Of(w.q, source)
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// began is the time of the first entry.
var began = time.UnixMilli(1_700_000_000_000)

// note adds n entries to the history, a second apart.
func (w *world) note(n int) {
	w.Helper()
	for range n {
		ms := began.UnixMilli() + int64(len(w.ids))*1000
		id, err := w.rdb.XAdd(w.Context(), &redis.XAddArgs{Stream: w.keys.History, ID: fmt.Sprintf("%d-1", ms), Values: map[string]any{
			"runs": fmt.Sprintf("beat@%d done 1 %d", ms, ms+1), "gen": "7", "instance": "i", "release": "v1",
		}}).Result()
		w.must(err)
		w.ids = append(w.ids, id)
	}
}

// archive archives what the history has up to an entry.
func (w *world) archive(upTo int, losses ...archive.Loss) {
	w.Helper()
	ctx := w.Context()
	was, err := w.a.Position(ctx)
	w.must(err)
	b := archive.Batch{Losses: losses, Next: was}
	w.must(w.q.HistoryAfter(ctx, was.History, func(e history.Entry) error {
		if !history.Before(w.ids[upTo-1], e.ID) {
			b.Entries = append(b.Entries, e)
		}
		return nil
	}))
	b.Next.History, b.Next.At = w.ids[upTo-1], time.Now()
	w.must(w.a.Add(ctx, was, b))
}

// drop has Redis forget what came before an entry.
func (w *world) drop(before int) {
	w.Helper()
	w.must(w.rdb.XTrimMinID(w.Context(), w.keys.History, w.ids[before]).Err())
}

func (w *world) read(since time.Time) (ids []string) {
	w.Helper()
	w.must(w.p.History(w.Context(), since, func(e history.Entry) error {
		ids = append(ids, e.ID)
		return nil
	}))
	return ids
}

// Wherever the archive ends and Redis begins, each entry is read once, in order.
func TestHistory_hasNoGapAndNoDoubleAtTheSeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note(700)
	w.archive(650)
	for _, first := range []int{0, 1, 100, 649, 650} {
		w.drop(first)
		for _, from := range []int{0, 50, 300, 649, 690} {
			if got, want := w.read(began.Add(time.Duration(from)*time.Second)), w.ids[from:]; !slices.Equal(got, want) {
				t.Fatalf("Redis has %d.., from %d: %d entries, want %d", first, from, len(got), len(want))
			}
		}
		if got := w.read(time.Time{}); !slices.Equal(got, w.ids) {
			t.Fatalf("Redis has %d..: all are %d entries, want %d", first, len(got), len(w.ids))
		}
	}
}

// If Redis drops archived entries while the history is read, they are read in the archive.
func TestHistory_readsOnInTheArchiveWhenRedisDropsMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note(1200)
	w.archive(1200)
	var got []string
	w.must(w.p.History(t.Context(), time.Time{}, func(e history.Entry) error {
		if got = append(got, e.ID); len(got) == 50 { // the first page
			w.drop(1000)
		}
		return nil
	}))
	if !slices.Equal(got, w.ids) {
		t.Errorf("%d entries, want %d", len(got), len(w.ids))
	}
}

func TestHistoryBefore_goesOnInTheArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note(300)
	w.archive(290)
	w.drop(200)
	for _, pageOf := range []int{7, 100, 1000} {
		var got []string
		for after, more := "", true; more; {
			n := 0
			more = false
			w.must(w.p.HistoryBefore(t.Context(), after, "beat", func(e history.Entry) bool {
				if n == pageOf {
					more = true
					return false
				}
				n++
				got, after = append(got, e.ID), e.ID
				return true
			}))
		}
		slices.Reverse(got)
		if !slices.Equal(got, w.ids) {
			t.Errorf("pages of %d: %d entries, want %d", pageOf, len(got), len(w.ids))
		}
	}
}

func TestKnown_saysWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.note(100)
	at := func(n int) time.Time { return history.At(w.ids[n]).UTC() }
	known := func() past.Known {
		k, err := w.p.Known(t.Context(), began.Add(-time.Hour))
		w.must(err)
		return k
	}
	if k := known(); !k.From.IsZero() || len(k.Gaps) > 0 {
		t.Errorf("Redis has all: %+v", k)
	}
	w.archive(50)
	w.drop(40)
	if k := known(); !k.From.IsZero() || len(k.Gaps) > 0 {
		t.Errorf("both have all: %+v", k)
	}
	w.drop(70) // before it was archived
	if k := known(); len(k.Gaps) != 1 || !k.Gaps[0].From.Equal(at(49)) || !k.Gaps[0].To.Equal(at(70)) {
		t.Errorf("lost, and not noted yet: %+v", k)
	}
	w.archive(100, archive.Loss{From: at(49), To: at(70), Stream: "history", Entries: 20}, archive.Loss{From: at(1), To: at(9), Stream: "runs"})
	if k := known(); len(k.Gaps) != 1 || !k.Gaps[0].From.Equal(at(49)) || !k.Gaps[0].To.Equal(at(70)) {
		t.Errorf("lost, and noted: %+v", k)
	}
}

// An archive that is away hides nothing that Redis has, and says so where it is needed.
func TestPast_withoutItsDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	source, err := archive.NewSource(sqlarchive.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "none", "archive.db")}, "n", zerolog.Nop())
	w.must(err)
	w.p = past.Of(w.q, source)
	w.note(100)
	all := func() error { return w.p.History(t.Context(), time.Time{}, func(history.Entry) error { return nil }) }
	if err := all(); err == nil {
		t.Error("nobody knows whether there is more in the archive, and that is no error")
	}
	w.must(w.q.NoteArchived(t.Context(), history.At(w.ids[0]), false))
	if got := w.read(time.Time{}); !slices.Equal(got, w.ids) {
		t.Errorf("%d entries, want %d", len(got), len(w.ids))
	}
	if list, err := w.p.Events(t.Context(), time.Time{}, 10); len(list) > 0 || err != nil {
		t.Errorf("%+v, %v", list, err)
	}
	w.must(w.q.NoteArchived(t.Context(), began.Add(-time.Hour), false))
	if err := all(); err == nil {
		t.Error("the archive has more, and that is no error")
	}
	if _, err := w.p.Events(t.Context(), time.Time{}, 10); err == nil {
		t.Error("it may have more events, and that is no error")
	}
	w.must(w.q.NoteArchived(t.Context(), history.At(w.ids[0]), false))
	w.drop(50)
	if got := w.read(began.Add(60 * time.Second)); !slices.Equal(got, w.ids[60:]) {
		t.Errorf("%d entries, want %d", len(got), 40)
	}
	if err := all(); err == nil {
		t.Error("a history without its beginning is no error")
	}
	if _, err := w.p.Known(t.Context(), time.Time{}); err == nil {
		t.Error("what is known is said without the archive")
	}
}

// A database that hangs takes its own time and no more, and is the one that is blamed.
func TestPast_withADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	hangs, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0") // it takes connections, and never answers
	w := newWorld(t)
	w.must(err)
	t.Cleanup(func() { _ = hangs.Close() })
	source, err := archive.NewSource(sqlarchive.Config{URL: "postgres://u@" + hangs.Addr().String() + "/d"}, "n", zerolog.Nop())
	w.must(err)
	t.Cleanup(func() { _ = source.Close() })
	w.p = past.Of(w.q, source)
	for _, within := range []time.Duration{time.Minute, 3 * time.Second} { // the database has five
		ctx, done := context.WithTimeout(t.Context(), within)
		defer done()
		if _, err := w.p.Known(ctx, time.Time{}); !errors.Is(err, archive.ErrUnavailable) || within == time.Minute && ctx.Err() != nil {
			t.Errorf("within %s: %v", within, err)
		}
	}
}

func TestEvents_goOnInTheArchive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []string
	was, b := archive.Position{}, archive.Batch{}
	for i := range 30 {
		id := fmt.Sprintf("%d-0", began.UnixMilli()+int64(i)*1000)
		w.must(w.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.keys.Events, ID: id, Values: []any{"event", "joined", "instance", fmt.Sprint(i)}}).Err())
		ids = append(ids, id)
		b.Events = append(b.Events, archive.Event{ID: id, At: history.At(id), Kind: "joined", Fields: map[string]string{"instance": fmt.Sprint(i)}})
	}
	b.Next.Events = ids[29]
	w.must(w.a.Add(t.Context(), was, b))
	w.must(w.rdb.XTrimMinID(t.Context(), w.keys.Events, ids[20]).Err())
	idsOf := func(list []queue.Event, err error) (out []string) {
		w.must(err)
		for _, e := range list {
			out = append(out, e.ID)
		}
		return out
	}
	for limit, want := range map[int][]string{5: ids[25:], 12: ids[18:], 100: ids} {
		if got := idsOf(w.p.Events(t.Context(), time.Time{}, limit)); !slices.Equal(got, want) {
			t.Errorf("the newest %d: %v", limit, got)
		}
	}
	if got := idsOf(w.p.Events(t.Context(), began.Add(15*time.Second), 100)); !slices.Equal(got, ids[15:]) {
		t.Errorf("since: %v", got)
	}
	var got []string
	for after := "0"; ; {
		page := idsOf(w.p.EventsAfter(t.Context(), after, time.Time{}, 7))
		if len(page) == 0 {
			break
		}
		got, after = append(got, page...), page[len(page)-1]
	}
	if !slices.Equal(got, ids) {
		t.Errorf("page by page: %v", got)
	}
	w.must(w.rdb.Del(t.Context(), w.keys.Events).Err()) // Redis came back empty
	w.must(w.rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: w.keys.Events, Values: []any{"event", "joined"}}).Err())
	if got := idsOf(w.p.Events(t.Context(), began, 100)); len(got) != 31 {
		t.Errorf("from an empty Redis: %v", got)
	}
	if got := idsOf(w.p.EventsAfter(t.Context(), "0", time.Time{}, 100)); len(got) != 31 {
		t.Errorf("from an empty Redis, after: %v", got)
	}
}
