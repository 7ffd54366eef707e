package doctor

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestArchived_saysHowTheArchiveIs(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	p := queue.Partition{Namespace: testredis.Namespace(t)}
	file := sqlarchive.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "archive.db")}
	source, err := archive.NewSource(file, p.Namespace, zerolog.Nop())
	must(t, err)
	a, err := source.Archive(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, source.Close()) })
	q, err := queue.New(rdb, p, queue.Caps{})
	must(t, err)
	examined := func(rdb *redis.Client, s *archive.Source) Check {
		t.Helper()
		d := &doctor{cfg: Config{Redis: rdb}, archive: s, q: q}
		d.archived(t.Context())
		return d.checks[0]
	}
	want := func(c Check, state, detail string) {
		t.Helper()
		if c.Name != "archive" || c.State != state || !strings.Contains(c.Detail, detail) || c.State != OK && c.Hint == "" {
			t.Errorf("%+v, want %s, %q", c, state, detail)
		}
	}
	want(examined(rdb, source), OK, "empty, and nothing waits")
	const old = "1700000000000-0"
	must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: p.Keys().History, ID: old, Values: []any{"runs", "a@1 done 1 2"}}).Err())
	want(examined(rdb, source), Warn, "nothing is archived yet")
	must(t, a.Add(t.Context(), archive.Position{}, archive.Batch{Next: archive.Position{History: old}}))
	want(examined(rdb, source), OK, "all that ever was, up to 2023-11-14")
	limited := testredis.User(t, rdb, strings.Fields(queue.ACL(queue.AsInstance, p, false)))
	want(examined(limited, source), OK, "without +xtrim")
	want(examined(limited, source), OK, "without +memory|usage")
	must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: p.Keys().History, ID: "1700000001000-0", Values: []any{"runs", "a@1 done 1 2"}}).Err())
	want(examined(rdb, source), Warn, "waits")
	at := time.Now().Add(-time.Hour)
	must(t, a.Add(t.Context(), archive.Position{History: old}, archive.Batch{
		Next: archive.Position{History: "1700000001000-0", Lost: 7}, Losses: []archive.Loss{{From: at, To: at.Add(time.Minute), Stream: "history", Entries: 7}},
	}))
	want(examined(rdb, source), Warn, "entries were lost 1 times within")
	none, err := archive.NewSource(sqlarchive.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "none.db"), AsIs: true}, "n", zerolog.Nop())
	must(t, err)
	want(examined(rdb, none), Warn, "there are none yet")

	must(t, q.NoteArchived(t.Context(), at, false))
	want(examined(rdb, none), Fail, "is gone")
	fresh, err := archive.NewSource(sqlarchive.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "fresh.db")}, p.Namespace, zerolog.Nop())
	must(t, err)
	want(examined(rdb, fresh), Fail, "is gone")
	must(t, fresh.Close())

	away, err := archive.NewSource(sqlarchive.Config{URL: "postgres://u:s3cret@127.0.0.1:1/d"}, "n", zerolog.Nop())
	must(t, err)
	c := examined(rdb, away)
	want(c, Fail, "127.0.0.1")
	if strings.Contains(c.Detail+c.Hint, "s3cret") {
		t.Errorf("the password is shown: %+v", c)
	}
}

// A config without the archive that the instances have is noticed, and one of a namespace without any is not.
func TestArchived_noticesAConfigWithoutTheArchive(t *testing.T) {
	t.Parallel()
	rdb := testredis.Real(t)
	p := queue.Partition{Namespace: testredis.Namespace(t)}
	q, err := queue.New(rdb, p, queue.Caps{})
	must(t, err)
	d := &doctor{cfg: Config{Redis: rdb}, q: q}
	noted := func(id string) []Check {
		t.Helper()
		if id != "" {
			must(t, rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: p.Keys().Runs, ID: id, Values: []any{"tasks", "a done 1 2"}}).Err())
		}
		d.checks = nil
		d.archived(t.Context())
		return d.checks
	}
	for _, id := range []string{"", "1700000000000-0"} {
		if got := noted(id); len(got) != 0 {
			t.Errorf("after %q: %+v", id, got)
		}
	}
	if got := noted("*"); len(got) != 1 || got[0].State != Warn || got[0].Hint == "" {
		t.Errorf("%+v", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
