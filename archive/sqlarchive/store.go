package sqlarchive

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/database"
)

// callTimeout ends each call of the database, if nothing else does. openTimeout is how long a start may take, with all migrations.
const (
	callTimeout = time.Minute
	openTimeout = 2 * time.Minute
)

// mostConns is how many connections an archive has: one adds, one trims, the others read.
const mostConns = 4

// store is a namespace's part of an SQL database.
type store struct {
	db        *sql.DB
	engine    engine
	namespace string
	keep      time.Duration
	log       zerolog.Logger
	where     *database.Address
	asIs      bool // nothing is made or migrated
}

// engine is what PostgreSQL and SQLite do differently.
type engine interface {
	// time returns a time as an argument of a statement.
	time(moment) any
	// insert adds rows to a table, except those whose key is there.
	insert(ctx context.Context, tx *sql.Tx, t *table, namespace string, rows []row) error
	// prepare makes what must be there before rows of runs come.
	prepare(ctx context.Context, ran []row) error
	// trimRuns removes the runs noted before the edge of a namespace, as soon as that is cheap.
	trimRuns(ctx context.Context, a *store, edge moment, now time.Time) error
	// migrations says how the tables are migrated.
	migrations() migrating
	// kind returns what a person might do, and which of the errors of package archive an error is, or nil.
	kind(err error) (hint string, kind error)
}

func (c Config) open(ctx context.Context, namespace string, log zerolog.Logger) (*store, error) {
	where, err := c.parse()
	if err != nil {
		return nil, err
	}
	if c.AsIs && where.Postgres == nil && blank(where.File) {
		return nil, fmt.Errorf("open the archive: %w", errNoTables)
	}
	a := &store{namespace: name(namespace), keep: cmp.Or(c.Keep, defaultKeep), log: log, where: where, asIs: c.AsIs}
	open := a.openSQLite
	if where.Postgres != nil {
		open = a.openPostgres
	}
	if err := open(); err != nil {
		return nil, fmt.Errorf("open the archive: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	settle := a.migrate
	if c.AsIs {
		settle = a.check
	}
	err = a.connect(limited)
	if err == nil {
		err = settle(limited)
	}
	if err != nil {
		a.db.Close()
		return nil, fmt.Errorf("open the archive: %w", a.fault(ctx, err))
	}
	return a, nil
}

// Close implements [archive.Archive]: it closes the connections.
func (a *store) Close() error { return a.db.Close() }

// exec runs a statement by itself, and returns how many rows it changed.
func (a *store) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return changed(a.db.ExecContext(ctx, statement, args...))
}

func changed(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// query calls fn with each row that a statement returns.
func (a *store) query(ctx context.Context, fn func(*sql.Rows) error, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	rows, err := a.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
