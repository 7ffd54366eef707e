package sqlarchive

import (
	"context"
	"embed"

	"github.com/pressly/goose/v3"
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
		a.log.Warn().Int64("version", current).Int64("known", known).Msg("archive has tables of a newer release")
	}
	return err
}
