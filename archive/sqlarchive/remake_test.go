package sqlarchive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
)

// Tables that are dropped under an archive that is open are made again, whichever they are, and the namespace begins anew: its position
// would speak of rows that are gone. One that looks on makes none.
func TestAdd_makesTablesAgainThatWereDropped(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		a, db := open(t, url), raw(t, url)
		asIs := func(o *opening) { o.AsIs = true }
		b := open(t, url, asIs)
		every := []string{"onbeat_archive_versions", "onbeat_positions", "onbeat_runs", "onbeat_fates", "onbeat_revisions", "onbeat_events", "onbeat_losses", "onbeat_schedules"}
		for _, dropped := range [][]string{every, {"onbeat_positions"}, {"onbeat_runs"}} {
			at := add(t, a, ran(now, 1, 1))
			for _, table := range dropped {
				execute(t, db, "drop table "+table)
			}
			if _, err := (sqlarchive.Config{URL: url, AsIs: true}).Open(t.Context(), "test", opening{}.log); !errors.Is(err, archive.ErrTables) {
				t.Errorf("%s: one that looks on: %v", dropped, err)
			}
			if _, err := b.Position(t.Context()); dropped[0] != "onbeat_runs" && !errors.Is(err, archive.ErrTables) {
				t.Errorf("%s: the position for one that looks on: %v", dropped, err)
			}
			if err := a.Add(t.Context(), at, batch(at, ran(now, 2, 2))); !errors.Is(err, archive.ErrTables) {
				t.Errorf("%s: %v", dropped, err)
			}
			if at, err := a.Position(t.Context()); err != nil || at.History != "" {
				t.Errorf("%s: then at %+v, %v", dropped, at, err)
			}
			add(t, a, ran(now, 3, 3))
			if got := all(t, a); len(got) == 0 || got[len(got)-1].ID != idOf(now, 3) {
				t.Errorf("%s: %+v", dropped, got)
			}
			execute(t, db, "delete from onbeat_positions", "delete from onbeat_runs")
		}
		if err := a.Trim(t.Context(), time.Now()); err != nil {
			t.Error(err)
		}
	})
}
