package archiver_test

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

// A database that is restored empty under the leader gets its tables again, and all that Redis still has. What was archived before is
// a loss, also for a leader that comes later, and a first archive has none.
func TestArchiver_beginsAnewInADatabaseThatWasEmptied(t *testing.T) {
	t.Parallel()
	url := testpostgres.Database(t)
	w := newWorld(t, testredis.Real(t), url, queue.Caps{History: 150})
	a := w.archive()
	db, err := sql.Open("pgx", url)
	w.must(err)
	t.Cleanup(func() { _ = db.Close() })
	empty := func() {
		t.Helper()
		_, err := db.ExecContext(t.Context(), "drop schema public cascade; create schema public")
		w.must(err)
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
	since, err := w.q.ArchivedSince(t.Context())
	if err != nil || !since.Equal(history.At(all[0])) {
		t.Errorf("archived since %v, %v", since, err)
	}
	testredis.Eventually(t, patience, trimmed, "redis keeps what it keeps without an archive")

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
