package sqlarchive_test

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/archive/sqlarchive"
	"github.com/onbeat/onbeat/internal/field"
	"github.com/onbeat/onbeat/internal/testpostgres"
)

func postgres(t *testing.T) string {
	t.Helper()
	return testpostgres.Database(t)
}

func TestConfig_isRefusedByField(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"postgres://u@h/d", "postgresql://u:p@h:1,i:2/d?sslmode=require", "sqlite:///var/a.db", "sqlite://a.db", "sqlite://./a%20b.db"} {
		if err := (sqlarchive.Config{URL: url}).Validate(); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for url, reason := range map[string]string{
		"": "missing", "mysql://h/d": "unknown scheme", "secret": "unknown scheme", "sqlite::memory:": "in memory", "sqlite://:memory:": "in memory",
		"sqlite://": "names no file", "sqlite:///var/": "names no file", "sqlite://a.db?mode=ro": "takes no parameters", "sqlite://%zz": "cannot be parsed",
		"postgres://u:secret/x@h/d": "has an @", "postgres://u:secret#x@h/d": "has an @", "postgres://u:secret@x@h/d": "has an @",
		"postgres://u:secret@h:none/d": "cannot be parsed", "postgres://u@h/d?sslmode=secret": "cannot be parsed", "postgres://u:secret%@h/d": "cannot be parsed",
		"host=h password=secret": "unknown scheme",
	} {
		err := sqlarchive.Config{URL: url}.Validate()
		f := field.Of(err)
		if f == nil || f.Field != "archive.url" || !strings.Contains(f.Reason, reason) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
		if _, err := (sqlarchive.Config{URL: url}).Open(t.Context(), "", zerolog.Nop()); field.Of(err) == nil {
			t.Errorf("%q was opened: %v", url, err)
		}
	}
	if f := field.Of(sqlarchive.Config{URL: "sqlite://a.db", Keep: time.Hour}.Validate()); f == nil || f.Field != "archive.keep" {
		t.Errorf("keep of an hour: %v", f)
	}
}

func TestConfig_showsNoPassword(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"": "", "postgres://h/d": "postgres://h/d", "postgres://u@h/d": "postgres://u@h/d", "postgres://u:secret@h:1/d?password=secret": "postgres://u:…@h:1/d?…",
		"postgres://u:secret/x@h/d": "postgres://…", "u:secret@h": "…@h", "mysql://u:secret@h": "…", "sqlite:///a.db": "sqlite:///a.db",
	} {
		if got := (sqlarchive.Config{URL: url}).String(); got != want {
			t.Errorf("%q is shown as %q, want %q", url, got, want)
		}
	}
}

func TestOpen_ofWhatIsNotThereSaysWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	_, err = sqlarchive.Config{URL: "postgres://u:geheim@" + addr + "/d?sslmode=disable"}.Open(t.Context(), "", zerolog.Nop())
	if !errors.Is(err, archive.ErrUnavailable) || !archive.Retryable(err) || strings.Contains(err.Error(), "geheim") || strings.Contains(err.Error(), "\n") {
		t.Errorf("nobody listens: %v", err)
	}
	url := postgres(t)
	_, err = sqlarchive.Config{URL: strings.Replace(url, "/test", "/missing", 1)}.Open(t.Context(), "", zerolog.Nop())
	if !errors.Is(err, archive.ErrDenied) || archive.Retryable(err) {
		t.Errorf("no such database: %v", err)
	}
	_, err = sqlarchive.Config{URL: fileIn(filepath.Join(t.TempDir(), "missing"))}.Open(t.Context(), "", zerolog.Nop())
	if !errors.Is(err, archive.ErrDenied) {
		t.Errorf("no such folder: %v", err)
	}
	noise := filepath.Join(t.TempDir(), "archive.db")
	must(t, os.WriteFile(noise, []byte(strings.Repeat("no database ", 1000)), 0o600))
	if _, err = (sqlarchive.Config{URL: "sqlite://" + noise}).Open(t.Context(), "", zerolog.Nop()); err == nil || archive.Retryable(err) {
		t.Errorf("no database: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if _, err = (sqlarchive.Config{URL: url}).Open(ctx, "", zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("stopped: %v", err)
	}
}

// Instances start at once on an empty database, and one makes the tables.
func TestOpen_ofManyAtOnceMakesTheTablesOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() {
				a, err := sqlarchive.Config{URL: url}.Open(context.Background(), "test", zerolog.Nop())
				if err != nil {
					t.Error(err)
					return
				}
				if err := a.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := number(t, raw(t, url), "select count(*) from onbeat_archive_versions where version_id = 1"); n != 1 {
			t.Errorf("the tables were made %d times", n)
		}
		add(t, open(t, url), ran(now, 0, 1))
	})
}

// Another program keeps the file locked: opening says that it is busy, long before the time to open is over.
func TestOpen_ofAFileThatStaysLocked(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "archive.db")
	db, err := sql.Open("sqlite", file)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "BEGIN EXCLUSIVE")
	must(t, err)
	began := time.Now()
	_, err = sqlarchive.Config{URL: "sqlite://" + file}.Open(t.Context(), "test", zerolog.Nop())
	if took := time.Since(began); !errors.Is(err, archive.ErrUnavailable) || took > time.Minute {
		t.Errorf("%v, after %v", err, took)
	}
}

// After a rollback the program meets tables of the release that was taken back.
func TestOpen_worksOnTheTablesOfTheNextRelease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, url string) {
		add(t, open(t, url), ran(now, 0, 1))
		execute(t, raw(t, url), "alter table onbeat_runs add column colour text", "create table onbeat_more (a integer)",
			"insert into onbeat_archive_versions (version_id) values (2)")
		log := logged{text: "archive has tables of a newer release"}
		a := open(t, url, log.into)
		if log.n.Load() != 1 {
			t.Error("the log does not say so")
		}
		add(t, a, ran(now, 1, 2))
		if n := len(all(t, a)); n != 2 {
			t.Errorf("%d entries", n)
		}
		must(t, a.Trim(t.Context(), now))
	})
}

func as(url, user string) string { return strings.Replace(url, "test@", user+"@", 1) }

// The users of a database belong to its whole server, so the test has one of its own.
func TestOpen_byAUserWhoMayNotMakeTables(t *testing.T) {
	t.Parallel()
	server := testpostgres.Private(t, "fsync=off")
	url := server.Database()
	db := raw(t, url)
	execute(t, db, "revoke create on schema public from public", "create user small")
	_, err := sqlarchive.Config{URL: as(url, "small")}.Open(t.Context(), "test", zerolog.Nop())
	if !errors.Is(err, archive.ErrDenied) || !strings.Contains(err.Error(), "grant the user CREATE") || strings.Contains(err.Error(), "\n") {
		t.Errorf("on an empty database: %v", err)
	}
	open(t, url)
	execute(t, db, "grant select, insert, update, delete on all tables in schema public to small")
	log := logged{text: "archive makes no partitions"}
	a := open(t, as(url, "small"), log.into, keeping(day))
	add(t, a, ran(now.Add(-20*day), 0, 1), ran(now, 0, 2))
	add(t, a, ran(now.Add(time.Second), 0, 3))
	if n := len(all(t, a)); n != 3 {
		t.Errorf("%d entries", n)
	}
	must(t, a.Trim(t.Context(), now))
	if n := len(all(t, a)); n != 2 {
		t.Errorf("%d entries after the trim", n)
	}
	if log.n.Load() != 1 {
		t.Errorf("the log says %d times that there are no partitions", log.n.Load())
	}
	execute(t, db, "revoke insert on onbeat_runs from small")
	was, err := a.Position(t.Context())
	must(t, err)
	if err := a.Add(t.Context(), was, batch(was, ran(now, 9, 9))); !errors.Is(err, archive.ErrDenied) {
		t.Errorf("without the right to insert: %v", err)
	}
}

// An instance stands still in the middle of Add, with the lock of the position. Its successor waits no longer than the limits say.
func TestAdd_waitsForNobodyForEver(t *testing.T) {
	t.Parallel()
	url := postgres(t)
	a := open(t, url+"&lock_timeout=300ms")
	was := add(t, a, ran(now, 0, 1))
	frozen, err := raw(t, url+"&idle_in_transaction_session_timeout=1500ms").Conn(t.Context())
	must(t, err)
	defer frozen.Close()
	for _, s := range []string{"begin", "update onbeat_positions set read = read + 1"} {
		_, err := frozen.ExecContext(t.Context(), s)
		must(t, err)
	}
	b := batch(was, ran(now, 1, 2))
	if err := a.Add(t.Context(), was, b); !errors.Is(err, archive.ErrUnavailable) {
		t.Fatalf("while another holds the position: %v", err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		err := a.Add(t.Context(), was, b)
		if err == nil {
			break
		}
		if !archive.Retryable(err) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if n := len(all(t, a)); n != 2 {
		t.Errorf("%d entries", n)
	}
}
