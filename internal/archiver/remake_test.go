package archiver_test

import (
	"database/sql"
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
	kept := func() []string {
		t.Helper()
		return ids(w.rdb.XRange(t.Context(), w.keys.History, "-", "+").Val())
	}
	losses := func(want int) []archive.Loss {
		t.Helper()
		list, err := a.Lost(t.Context(), time.Time{})
		if err != nil || len(list) != want {
			t.Fatalf("%+v, %v; want %d", list, err, want)
		}
		return list
	}
	trimmed := func() bool { return w.rdb.XLen(t.Context(), w.keys.History).Val() < 400 }

	all := w.note(1000)
	stop := w.follow("a")
	w.eventually(a, all)
	losses(0)
	since, err := w.q.ArchivedSince(t.Context())
	if err != nil || !since.Equal(history.At(all[0])) {
		t.Errorf("archived since %v, %v", since, err)
	}
	testredis.Eventually(t, patience, trimmed, "redis keeps what it keeps without an archive")

	empty()
	w.note(1)
	there := kept()
	w.eventually(a, there)
	l := losses(1)[0]
	if l.Stream != "all" || !l.From.Equal(since) || !l.To.Equal(history.At(there[0])) {
		t.Errorf("%+v, want from %v to %v", l, since, history.At(there[0]))
	}

	stop()
	empty()
	w.follow("b")
	w.eventually(a, there)
	losses(1)
	testredis.Eventually(t, patience, func() bool {
		events, err := w.q.Events(t.Context(), time.Time{}, 10)
		_, lost := w.told.now()
		return err == nil && len(events) == 2 && events[1].Kind == "archive lost" && events[1].Fields["stream"] == "all" && lost == 2
	}, "an event and the observer tell each time")
}

func ids(list []redis.XMessage) (all []string) {
	for _, m := range list {
		all = append(all, m.ID)
	}
	return all
}
