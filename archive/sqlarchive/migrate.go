package sqlarchive

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/onbeat/onbeat/archive"
)

// migrations are files of SQL, the first of which makes the tables of version 1, and each other those of the next version.
//
//go:embed migrations
var migrations embed.FS

// versions is the table that says which versions there have been.
const versions = "onbeat_archive_versions"

// ownTables are those that each database has, besides versions.
var ownTables = []string{"onbeat_positions", runs.name, fates.name, revisions.name, events.name, losses.name, schedules.name}

// migrating is how the tables of a database are migrated.
type migrating struct {
	folder string   // of the migrations
	tables []string // those that the migrations make
	there  string   // counts those of a list of tables that are there
	begin  string   // begins a transaction in which no other instance migrates; empty: each transaction is one
}

// has reports whether all of these tables are there.
func (m *migrating) has(ctx context.Context, q rowQuerier, tables ...string) (bool, error) {
	n := 0
	err := q.QueryRowContext(ctx, strings.Replace(m.there, "LIST", "'"+strings.Join(tables, "', '")+"'", 1)).Scan(&n)
	return n == len(tables), err
}

type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// version returns the version of the tables, and that of this release: -1 if there are none, and 0 if some are missing.
func (a *store) version(ctx context.Context, q rowQuerier) (current, known int64, err error) {
	m := a.engine.migrations()
	files, err := fs.ReadDir(migrations, m.folder)
	if err != nil {
		return 0, 0, err
	}
	known = int64(len(files))
	if there, err := m.has(ctx, q, versions); err != nil || !there {
		return -1, known, err
	}
	if there, err := m.has(ctx, q, m.tables...); err != nil || !there {
		return 0, known, err
	}
	err = q.QueryRowContext(ctx, "select coalesce(max(version_id), 0) from "+versions).Scan(&current)
	return current, known, err
}

// migrate applies what is new, and says so if the tables are newer than this release, as after a rollback.
func (a *store) migrate(ctx context.Context) error {
	current, known, err := a.version(ctx, a.db)
	if err == nil && current < known {
		return a.apply(ctx)
	}
	if err == nil && current > known {
		a.log.Debug().Int64("version", current).Int64("known", known).Msg("archive has tables of a newer release")
	}
	return err
}

// apply applies what is new in one transaction, in which no other instance does. If tables were missing, all namespaces begin anew:
// their positions speak of rows that may be gone.
func (a *store) apply(ctx context.Context) error {
	m := a.engine.migrations()
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if m.begin != "" {
		if _, err := tx.ExecContext(ctx, m.begin); err != nil {
			return err
		}
	}
	current, known, err := a.version(ctx, tx)
	if err != nil || current >= known {
		return err
	}
	var statements []string
	remade := current <= 0
	if current < 0 {
		statements, current = append(statements, "create table "+versions+" (version_id bigint primary key)"), 0
	}
	files, err := fs.ReadDir(migrations, m.folder)
	if err != nil {
		return err
	}
	for v := current; v < known; v++ {
		text, err := migrations.ReadFile(m.folder + "/" + files[v].Name())
		if err != nil {
			return err
		}
		statements = append(statements, string(text), fmt.Sprintf("insert into %s (version_id) values (%d) on conflict do nothing", versions, v+1))
	}
	if remade {
		statements = append(statements, "delete from onbeat_positions")
	}
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	a.log.Info().Int64("version", known).Msg("archive migrated")
	return nil
}

// remake passes an error on. If it says that tables are missing, it makes them first: a later call finds them.
func (a *store) remake(ctx context.Context, err error) error {
	if a.asIs || err == nil {
		return err
	}
	lost := a.where.Postgres == nil && blank(a.where.File)
	if _, kind := a.engine.kind(err); !lost && !errors.Is(kind, archive.ErrTables) {
		return err
	}
	a.log.Error().Err(err).Msg("tables of the archive are gone: making them again")
	if lost {
		if made := makeFile(a.where.File); made != nil {
			return made
		}
	}
	if made := a.migrate(ctx); made != nil {
		return made
	}
	return err
}

var errNoTables = fmt.Errorf("%w: there are none yet, an instance that leads makes them", archive.ErrTables)

// check refuses tables that this release would make or migrate, and changes none.
func (a *store) check(ctx context.Context) error {
	current, known, err := a.version(ctx, a.db)
	switch {
	case err != nil:
		return err
	case current < 0:
		return errNoTables
	case current == 0:
		return fmt.Errorf("%w: some of them are gone, an instance that leads makes them again", archive.ErrTables)
	case current < known:
		return fmt.Errorf("%w: they are of version %d, an instance of this release that leads migrates them to %d", archive.ErrTables, current, known)
	}
	return nil
}

// blank reports whether a file of SQLite is missing, or has nothing in it.
func blank(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}
