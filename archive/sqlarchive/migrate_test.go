package sqlarchive

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/testpostgres"
)

// A commit waits for the disk, also where the database is set not to.
func TestOpen_makesCommitsDurable(t *testing.T) {
	t.Parallel()
	url := testpostgres.Database(t) + "&synchronous_commit=off"
	a, err := Config{URL: url}.open(t.Context(), "test", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for statement, want := range map[string]string{"show synchronous_commit": "on", "show lock_timeout": "10s", "show idle_in_transaction_session_timeout": "30s"} {
		if got := read(t, a.db, statement); got != want {
			t.Errorf("%s: %s, want %s", statement, got, want)
		}
	}
	b, err := Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "a b%20?.db")}.open(t.Context(), "test", zerolog.Nop())
	if err == nil {
		b.Close()
		t.Fatal("a path with a question mark was taken")
	}
	if b, err = (Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "a b%25.db")}).open(t.Context(), "test", zerolog.Nop()); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for statement, want := range map[string]string{"pragma synchronous": "2", "pragma journal_mode": "wal", "pragma busy_timeout": "10000"} {
		if got := read(t, b.db, statement); got != want {
			t.Errorf("%s: %s, want %s", statement, got, want)
		}
	}
}

func read(t *testing.T, db *sql.DB, statement string) (s string) {
	t.Helper()
	if err := db.QueryRow(statement).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// One that looks on makes and migrates nothing, and says what an instance would do.
func TestOpen_asIsChangesNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.db")
	for name, url := range map[string]string{"postgres": testpostgres.Database(t), "sqlite": "sqlite://" + file} {
		c := Config{URL: url, AsIs: true}
		for range 2 {
			if _, err := c.open(t.Context(), "test", zerolog.Nop()); !errors.Is(err, archive.ErrTables) || !strings.Contains(err.Error(), "there are none yet") {
				t.Errorf("%s: no tables: %v", name, err)
			}
		}
		if _, err := os.Stat(file); name == "sqlite" && err == nil {
			t.Error("a file was made")
		}
		c.AsIs = false
		a, err := c.open(t.Context(), "test", zerolog.Nop())
		if err != nil {
			t.Fatal(name, err)
		}
		defer a.Close()
		c.AsIs = true
		b, err := c.open(t.Context(), "test", zerolog.Nop())
		if err != nil {
			t.Fatal(name, err)
		}
		defer b.Close()
		if _, err := b.Position(t.Context()); err != nil {
			t.Error(name, err)
		}
		if _, err := a.db.Exec("delete from " + versions + " where version_id > 0"); err != nil {
			t.Fatal(name, err)
		}
		if _, err := c.open(t.Context(), "test", zerolog.Nop()); !errors.Is(err, archive.ErrTables) {
			t.Errorf("%s: older tables: %v", name, err)
		}
	}
}

// A file that is removed is made again, for this user alone.
func TestPosition_followsTheNameOfTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.db")
	a, err := Config{URL: "sqlite://" + file}.open(t.Context(), "test", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Add(t.Context(), archive.Position{}, archive.Batch{Next: archive.Position{History: "1-0", Read: 1}}); err != nil {
		t.Fatal(err)
	}
	a.db.SetConnMaxLifetime(time.Nanosecond) // as if the minute was over
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if at, err := a.Position(t.Context()); err == nil {
		t.Errorf("at %+v without a file", at)
	}
	if at, err := a.Position(t.Context()); err != nil || at.History != "" {
		t.Errorf("then at %+v, %v", at, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}
