package sqlarchive_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	_ "modernc.org/sqlite"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/testpostgres"
	_ "github.com/onbeat/onbeat/postgres"
)

func TestMain(m *testing.M) {
	if what := os.Getenv(asFollower); what != "" {
		os.Exit(beFollower(what))
	}
	goleak.VerifyTestMain(m)
}

// each runs a test on both databases.
func each(t *testing.T, fn func(t *testing.T, url string)) {
	t.Helper()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		fn(t, testpostgres.Database(t))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fn(t, fileIn(t.TempDir()))
	})
}

func fileIn(dir string) string { return "sqlite://" + filepath.Join(dir, "archive.db") }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opening is how a test opens an archive.
type opening struct {
	sqlarchive.Config
	namespace string
	log       zerolog.Logger
}

// open opens the archive of a namespace, and closes it when the test ends.
func open(t testing.TB, url string, change ...func(*opening)) archive.Archive {
	t.Helper()
	o := opening{Config: sqlarchive.Config{URL: url}, namespace: "test"}
	for _, f := range change {
		f(&o)
	}
	a, err := o.Open(context.Background(), o.namespace, o.log)
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	return a
}

// logged counts the lines of a log that have a text.
type logged struct {
	text string
	n    atomic.Int64
}

func (l *logged) Write(p []byte) (int, error) {
	if strings.Contains(string(p), l.text) {
		l.n.Add(1)
	}
	return len(p), nil
}

func (l *logged) into(o *opening) { o.log = zerolog.New(l) }

// raw opens the database beside the archive.
func raw(t testing.TB, url string) *sql.DB {
	t.Helper()
	driver, dsn := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		driver, dsn = "sqlite", path
	}
	db, err := sql.Open(driver, dsn)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func number(t testing.TB, db *sql.DB, query string, args ...any) (n int64) {
	t.Helper()
	must(t, db.QueryRow(query, args...).Scan(&n))
	return n
}

func execute(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// now is a moment of today, in whole milliseconds, as Redis has it.
var now = time.Now().UTC().Truncate(time.Millisecond)

func idOf(at time.Time, seq int) string {
	return strconv.FormatInt(at.UnixMilli(), 10) + "-" + strconv.Itoa(seq)
}

// ran is an entry with the runs of slots at a moment.
func ran(at time.Time, seq int, slots ...int) history.Entry {
	e := history.Entry{ID: idOf(at, seq), At: at}
	for _, i := range slots {
		slot := now.Add(-time.Hour).Add(time.Duration(i) * time.Second)
		e.Notes = append(e.Notes, history.Note{
			Schedule: "report", Maker: "report", Slot: slot, Word: history.Done, Attempt: 1, Claimed: at.Add(-time.Second),
			Took: 900 * time.Millisecond, Type: "http", Queue: "default", Due: slot, Output: "12 rows\nof 12",
			TaskID: fmt.Sprintf("report@%d", slot.UnixMilli()), Gen: 7, Instance: "i1", Release: "v1", At: at,
		})
	}
	return e
}

// batch is entries, and the position behind the last of them.
func batch(was archive.Position, entries ...history.Entry) archive.Batch {
	next := was
	next.History, next.Read, next.At = entries[len(entries)-1].ID, was.Read+int64(len(entries)), now
	return archive.Batch{Entries: entries, Next: next}
}

// add adds entries behind the position, and returns the next one.
func add(t testing.TB, a archive.Archive, entries ...history.Entry) archive.Position {
	t.Helper()
	was, err := a.Position(t.Context())
	must(t, err)
	b := batch(was, entries...)
	must(t, a.Add(t.Context(), was, b))
	return b.Next
}

// all is the history of an archive.
func all(t testing.TB, a archive.Archive) []history.Entry {
	t.Helper()
	var list []history.Entry
	must(t, a.History(t.Context(), time.Time{}, func(e history.Entry) error {
		list = append(list, e)
		return nil
	}))
	return list
}
