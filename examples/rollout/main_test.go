package main

import (
	"database/sql"
	"slices"
	"testing"
	"time"

	"github.com/onbeat/onbeat/examples/internal/program"
	"github.com/onbeat/onbeat/internal/testpostgres"
	"github.com/onbeat/onbeat/internal/testredis"
)

func TestMain(m *testing.M) { testredis.Main(m) }

const every = 500 * time.Millisecond

// v1 gives way to v2, and v2 to v1 again, as after a rollback. The rows have each slot once, on one grid.
func TestRollout_isNotSeenInTheRows(t *testing.T) {
	t.Parallel()
	file, database := program.Build(t, "."), testpostgres.Database(t)
	env := []string{"REDIS_URL=" + testredis.Private(t).URL(), "DATABASE_URL=" + database, "EVERY=" + every.String()}
	start := func(release string) *program.Process {
		p := program.Start(t, file, append(env, "RELEASE="+release))
		p.Says(release+" wrote the row of", 3)
		return p
	}
	first := start("v1")
	second := start("v2") // it leads as soon as it is ready
	first.Stop()
	third := start("v1")
	second.Stop()
	third.Says("v1 wrote the row of", 6)
	third.Stop()

	db, err := sql.Open("pgx", database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "select slot, release from beats order by slot")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var last time.Time
	var releases []string
	for rows.Next() {
		var slot time.Time
		var release string
		if err := rows.Scan(&slot, &release); err != nil {
			t.Fatal(err)
		}
		if !last.IsZero() && !slot.Equal(last.Add(every)) {
			t.Errorf("behind the slot of %s comes that of %s", last, slot)
		}
		last, releases = slot, append(releases, release)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if list := slices.Compact(releases); len(list) < 3 {
		t.Errorf("the rows are of %v: no rollout happened", list)
	}
}
