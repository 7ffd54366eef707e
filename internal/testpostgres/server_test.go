package testpostgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/onbeat/onbeat/internal/testpostgres"
)

func query(t *testing.T, url, sql string) (n int) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	if err := c.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Committed rows outlast a crash of the server, which comes back where it was.
func TestPrivate_comesBackAfterACrash(t *testing.T) {
	t.Parallel()
	s := testpostgres.Private(t)
	url := s.Database()
	query(t, url, "with made as (select 1) select count(*) from made")
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), "create table a as select generate_series(1, 5)"); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	if err := c.Ping(t.Context()); err == nil {
		t.Error("a killed server answers")
	}
	s.Start()
	if n := query(t, url, "select count(*) from a"); n != 5 {
		t.Errorf("%d rows after the crash", n)
	}
	s.Stop()
	s.Start()
	if n := query(t, url, "select count(*) from a"); n != 5 {
		t.Errorf("%d rows after a clean stop", n)
	}
}

func TestDatabase_isEmptyAndOnesOwn(t *testing.T) {
	t.Parallel()
	a, b := testpostgres.Database(t), testpostgres.Database(t)
	if a == b {
		t.Errorf("one database for two: %s", a)
	}
	if n := query(t, a, "select count(*) from information_schema.tables where table_schema = 'public'"); n != 0 {
		t.Errorf("%d tables", n)
	}
}
