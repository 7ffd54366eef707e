package sqlarchive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/onbeat/onbeat/archive"
)

// pragmas are for each connection, which makes no file. A commit waits for the disk: Redis drops what is archived. A writer waits for another one for
// up to 10 s. The log is copied into the file after 16 MB, not after each batch.
const pragmas = "mode=rw&_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)" +
	"&_pragma=wal_autocheckpoint(4000)&_pragma=cache_size(-16000)"

// lockedTime is the busy_timeout of pragmas.
const lockedTime = 10 * time.Second

type sqlite struct{}

func (a *store) openSQLite() error {
	err := makeFile(a.where.File)
	if err != nil {
		return err
	}
	if a.db, err = a.where.Open(pragmas, ""); err != nil {
		return err
	}
	a.db.SetMaxOpenConns(mostConns)
	a.db.SetMaxIdleConns(mostConns)
	a.db.SetConnMaxLifetime(time.Minute) // then it opens the file that has the name by now
	a.engine = sqlite{}
	return nil
}

// connect makes the first connection. Where several switch a new file to its log at once, SQLite tells all but one that it is busy, and waits for
// nobody (busy_timeout does not count there): they try again, for as long as a writer waits for another. A file that stays locked is busy then.
// The last try may take as long again.
func (a *store) connect(ctx context.Context) error {
	for began := time.Now(); ; {
		err := a.db.PingContext(ctx)
		var said interface{ Code() int }
		if !errors.As(err, &said) || said.Code()&0xff != liteBusy || time.Since(began) > lockedTime {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// makeFile makes the file if it is missing, for this user alone: outputs of runs may be secret.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", archive.ErrDenied, err)
	}
	return nil
}

func (sqlite) time(m moment) any {
	if m.IsZero() {
		return nil
	}
	return m.UnixMilli()
}

// manyRows is how many rows one statement adds.
const manyRows = 50

func (s sqlite) insert(ctx context.Context, tx *sql.Tx, t *table, namespace string, rows []row) error {
	for len(rows) > 0 {
		n := manyRows
		if len(rows) < n {
			n = 1
		}
		whole := len(rows) / n * n
		if err := s.insertBy(ctx, tx, t, namespace, rows[:whole], n); err != nil {
			return err
		}
		rows = rows[whole:]
	}
	return nil
}

// insertBy adds rows, n with each statement.
func (s sqlite) insertBy(ctx context.Context, tx *sql.Tx, t *table, namespace string, rows []row, n int) error {
	one := "(?" + strings.Repeat(", ?", len(t.columns)) + ")"
	statement, err := tx.PrepareContext(ctx, "insert into "+t.name+" (namespace, "+t.list()+") values "+one+strings.Repeat(", "+one, n-1)+
		" on conflict do nothing")
	if err != nil {
		return err
	}
	defer statement.Close()
	args := make([]any, 0, n*(1+len(t.columns)))
	for ; len(rows) > 0; rows = rows[n:] {
		args = args[:0]
		for _, r := range rows[:n] {
			args = append(args, namespace)
			for _, v := range r.values() {
				args = append(args, s.value(v))
			}
		}
		if _, err := statement.ExecContext(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (s sqlite) value(v any) any {
	switch v := v.(type) {
	case *string:
		return *v
	case *int64:
		return *v
	case *number:
		if *v == 0 {
			return nil
		}
		return int64(*v)
	case *moment:
		return s.time(*v)
	case *object:
		return v.String()
	}
	return v
}

func (sqlite) prepare(context.Context, []row) error { return nil }

func (sqlite) trimRuns(ctx context.Context, a *store, edge moment, _ time.Time) error {
	return a.removeBefore(ctx, runs.name, "noted", edge)
}

func (sqlite) migrations() migrating {
	return migrating{folder: "migrations/sqlite", tables: ownTables, there: "select count(*) from sqlite_master where name in (LIST)"}
}

// The codes of SQLite, as https://sqlite.org/rescode.html has them.
const (
	liteError    = 1
	litePerm     = 3
	liteBusy     = 5
	liteLocked   = 6
	liteNoMemory = 7
	liteReadOnly = 8
	liteStopped  = 9
	liteIO       = 10
	liteCorrupt  = 11
	liteFull     = 13
	liteCantOpen = 14
	liteAuth     = 23
	liteNotADB   = 26
)

func (sqlite) kind(err error) (string, error) {
	var said interface{ Code() int }
	if !errors.As(err, &said) {
		return "", nil
	}
	switch said.Code() & 0xff {
	case liteError:
		if strings.Contains(err.Error(), "no such table: onbeat_") {
			return "", archive.ErrTables
		}
	case liteBusy, liteLocked, liteStopped, liteIO, liteNoMemory:
		return "", archive.ErrUnavailable
	case liteFull:
		return "", archive.ErrFull
	case liteReadOnly, liteCantOpen, litePerm, liteAuth:
		return "see the rights of the file and of its folder", archive.ErrDenied
	case liteCorrupt, liteNotADB:
		return "the file is damaged: move it away, and a new archive begins", nil
	}
	return "", nil
}
