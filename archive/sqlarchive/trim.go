package sqlarchive

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// trimRows is about how many rows a step of Trim removes.
const trimRows = "1000"

// Trim implements [archive.Archive], in small steps. On PostgreSQL it also makes the partitions of the next days, and removes runs a
// day at a time, up to four days late.
func (a *store) Trim(ctx context.Context, now time.Time) error {
	if err := a.remake(ctx, a.trim(ctx, now)); err != nil {
		return fmt.Errorf("trim the archive: %w", a.fault(ctx, err))
	}
	return nil
}

func (a *store) trim(ctx context.Context, now time.Time) error {
	edge := ofMs(now.Add(-a.keep).UnixMilli())
	// First: the archive no longer promises the rows that are about to go.
	if _, err := a.exec(ctx, `update onbeat_positions set keep_ms = $1, trimmed = case when trimmed > $2 then trimmed else $2 end
		where namespace = $3`, a.keep.Milliseconds(), a.engine.time(edge), a.namespace); err != nil {
		return err
	}
	if err := a.engine.trimRuns(ctx, a, edge, now); err != nil {
		return err
	}
	for _, of := range []struct{ table, column string }{{fates.name, "noted"}, {events.name, "at"}, {losses.name, "until"}} {
		if err := a.removeBefore(ctx, of.table, of.column, edge); err != nil {
			return err
		}
	}
	_, err := a.exec(ctx, `delete from onbeat_revisions where namespace = $1 and (at is null or at < $2) and (definition = '' or exists (
		select 1 from onbeat_revisions later where later.namespace = onbeat_revisions.namespace
		and later.schedule = onbeat_revisions.schedule and later.revision > onbeat_revisions.revision and later.at < $2))`,
		a.namespace, a.engine.time(edge))
	return err
}

const removeStep = `delete from TABLE where namespace = $1 and COLUMN < $2 and COLUMN <= coalesce(
	(select COLUMN from TABLE where namespace = $1 and COLUMN < $2 order by COLUMN limit 1 offset ROWS), $2)`

// removeBefore removes a namespace's rows of before a moment. It rests after each step for as long as the step took, so that
// others write meanwhile.
func (a *store) removeBefore(ctx context.Context, table, column string, edge moment) error {
	statement := strings.NewReplacer("TABLE", table, "COLUMN", column, "ROWS", trimRows).Replace(removeStep)
	for {
		began := time.Now()
		n, err := a.exec(ctx, statement, a.namespace, a.engine.time(edge))
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(time.Since(began), time.Second)):
		}
	}
}
