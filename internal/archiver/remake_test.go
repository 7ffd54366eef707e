package archiver_test

import (
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A database that is restored empty under the leader gets its tables again, and all that Redis still has. Older entries were
// archived, and are a loss, also for a leader that comes later. A first archive has no loss.
func TestArchiver_beginsAnewInADatabaseThatWasEmptied(t *testing.T) {
	t.Parallel()
	url := testpostgres.Database(t)
	w := newWorld(t, testredis.Real(t), url, queue.Caps{History: 150})
	a := w.archive()
	empty := func() {
		t.Helper()
		w.empty(url)
	}
	kept := func(stream string) []string {
		t.Helper()
		return ids(w.rdb.XRange(t.Context(), stream, "-", "+").Val())
	}
	losses := func(streams ...string) []archive.Loss {
		t.Helper()
		list, err := a.Lost(t.Context(), time.Time{})
		if err != nil || len(list) != len(streams) {
			t.Fatalf("%+v, %v; want %v", list, err, streams)
		}
		for _, l := range list {
			if !slices.Contains(streams, l.Stream) {
				t.Fatalf("%+v; want %v", list, streams)
			}
		}
		return list
	}
	trimmed := func() bool {
		return w.rdb.XLen(t.Context(), w.keys.History).Val() < 400 && w.rdb.XLen(t.Context(), w.keys.Runs).Val() < 250
	}

	all := w.note(1000)
	w.add(w.keys.Runs, "tasks", 500)
	stop := w.follow("a")
	w.eventually(a, all)
	losses()
	since, _, err := w.q.ArchivedSince(t.Context())
	if err != nil || !since.Equal(history.At(all[0])) {
		t.Errorf("archived since %v, %v", since, err)
	}
	testredis.Eventually(t, patience, trimmed, "redis keeps what it keeps without an archive")
	// Redis trims whole nodes of the stream. Add entries until the next node has gone: entries that are added below make no node due.
	for before := int64(0); ; {
		n := w.rdb.XLen(t.Context(), w.keys.History).Val()
		if n < before {
			break
		}
		before = n
		all = append(all, w.note(1)...)
		w.eventually(a, all)
		tail, err := w.q.HistoryTail(t.Context(), "", 1)
		w.must(err)
		_, err = w.q.TrimHistory(t.Context(), tail.Stream)
		w.must(err)
	}

	empty()
	w.note(1)
	there := kept(w.keys.History)
	w.eventually(a, there)
	for _, l := range losses("history", "runs") {
		first := map[string]string{"history": there[0], "runs": kept(w.keys.Runs)[0]}[l.Stream]
		if !l.From.Equal(since) || !l.To.Equal(history.At(first)) {
			t.Errorf("%+v, want from %v to %v", l, since, history.At(first))
		}
	}

	stop()
	empty()
	w.follow("b")
	w.eventually(a, there) // Redis still has all of the history that was archived since
	losses("runs")
	testredis.Eventually(t, patience, func() bool {
		events, err := w.q.Events(t.Context(), time.Time{}, 10)
		_, lost := w.told.now()
		return err == nil && len(events) == 3 && events[2].Kind == "archive lost" && lost == 3
	}, "an event and the observer tell each time")
}

func ids(list []redis.XMessage) (all []string) {
	for _, m := range list {
		all = append(all, m.ID)
	}
	return all
}

// Redis comes back empty, and the archive has more than Redis knows of. Then the database is emptied too: the archived entries are a loss,
// though Redis has all that it added since.
func TestArchiver_tellsOfALossInRedisAndThenInTheDatabase(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, testredis.Real(t), url, queue.Caps{History: 150})
		a := w.archive()
		all := w.note(100)
		w.add(w.keys.Runs, "tasks", 10)
		w.follow("a")
		w.eventually(a, all)
		for _, k := range w.rdb.Keys(t.Context(), "*{"+w.ns+"}*").Val() {
			w.must(w.rdb.Del(t.Context(), k).Err())
		}
		few := w.note(20)
		w.eventually(a, append(all, few...))
		testredis.Eventually(t, patience, func() bool {
			since, older, err := w.q.ArchivedSince(t.Context())
			return err == nil && older && !since.IsZero()
		}, "Redis knows that there is an archive")

		w.empty(url)
		few = append(few, w.note(1)...)
		w.eventually(a, few)
		list, err := a.Lost(t.Context(), time.Time{})
		w.must(err)
		want := map[string]time.Time{"history": history.At(few[0]), "runs": {}}
		for _, l := range list {
			if to, ok := want[l.Stream]; ok && l.From.Before(history.At(few[0])) && (to.IsZero() || l.To.Equal(to)) {
				delete(want, l.Stream)
			}
		}
		if len(want) > 0 {
			t.Errorf("nothing is told of %v: %+v", want, list)
		}
	})
}

// A leader without work notices too that the tables are gone.
func TestArchiver_makesTheTablesAgainWhileNothingHappens(t *testing.T) {
	t.Parallel()
	databases(t, func(t *testing.T, url string) {
		w := newWorld(t, testredis.Client(t), url, queue.Caps{History: 150})
		a := w.archive()
		all := w.note(20)
		w.follow("a")
		w.eventually(a, all)
		w.empty(url)
		w.eventually(a, all)
	})
}

// empty drops all tables of the archive.
func (w *world) empty(url string) {
	w.Helper()
	driver, at, drop := "pgx", url, []string{"drop schema public cascade", "create schema public"}
	if file, ok := strings.CutPrefix(url, "sqlite://"); ok {
		driver, at, drop = "sqlite", "file:"+file+"?_pragma=busy_timeout(10000)", nil
	}
	db, err := sql.Open(driver, at)
	w.must(err)
	defer func() { _ = db.Close() }()
	if driver == "sqlite" {
		rows, err := db.QueryContext(w.Context(), "select name from sqlite_master where type = 'table' and name like 'onbeat_%'")
		w.must(err)
		for rows.Next() {
			var name string
			w.must(rows.Scan(&name))
			drop = append(drop, "drop table "+name)
		}
		w.must(rows.Err())
		w.must(rows.Close())
	}
	for _, statement := range drop {
		_, err := db.ExecContext(w.Context(), statement)
		w.must(err)
	}
}
