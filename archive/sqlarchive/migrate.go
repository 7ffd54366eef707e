package sqlarchive

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/pressly/goose/v3"

	"github.com/onbeat/onbeat/archive"
)

//go:embed migrations
var migrations embed.FS

// versions is the table in which goose keeps which migrations were applied.
const versions = "onbeat_archive_versions"

func (a *store) provider() (*goose.Provider, error) {
	dialect, files, opts, err := a.engine.migrations()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, a.db, files, append(opts, goose.WithTableName(versions), goose.WithDisableGlobalRegistry(true))...)
}

// migrate applies what is new. A database without a lock has another instance do it at the same moment: one of the two fails,
// and finds it done.
func (a *store) migrate(ctx context.Context) error {
	const tries = 3
	var err error
	for range tries {
		var p *goose.Provider
		if p, err = a.provider(); err != nil {
			return err
		}
		var applied []*goose.MigrationResult
		if applied, err = p.Up(ctx); err == nil {
			if len(applied) > 0 {
				a.log.Info().Int64("version", applied[len(applied)-1].Source.Version).Msg("archive migrated")
			}
			return a.compare(ctx, p)
		}
		if kind, _ := a.engine.kind(err); kind != nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// compare says so if the tables are newer than this release, as after a rollback.
func (a *store) compare(ctx context.Context, p *goose.Provider) error {
	current, known, err := p.GetVersions(ctx)
	if err == nil && current > known {
		a.log.Debug().Int64("version", current).Int64("known", known).Msg("archive has tables of a newer release")
	}
	return err
}

var noTables = fmt.Errorf("%w: there are none yet, an instance that leads makes them", archive.ErrTables)

// check refuses tables that this release would make or migrate, and changes none.
func (a *store) check(ctx context.Context) error {
	p, err := a.provider()
	if err != nil {
		return err
	}
	there := "select count(*) from pg_catalog.pg_class where oid = to_regclass('" + versions + "')"
	if _, lite := a.engine.(sqlite); lite {
		there = "select count(*) from sqlite_master where name = '" + versions + "'"
	}
	n, current := 0, int64(0)
	if err := a.db.QueryRowContext(ctx, there).Scan(&n); err != nil {
		return err
	}
	if n == 0 {
		return noTables
	}
	if err := a.db.QueryRowContext(ctx, "select coalesce(max(version_id), 0) from "+versions).Scan(&current); err != nil {
		return err
	}
	sources := p.ListSources()
	if known := sources[len(sources)-1].Version; current < known {
		return fmt.Errorf("%w: they are of version %d, an instance of this release that leads migrates them to %d", archive.ErrTables, current, known)
	}
	return nil
}

// blank reports whether a file of SQLite is missing, or has nothing in it.
func blank(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}
