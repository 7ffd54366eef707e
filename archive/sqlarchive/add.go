package sqlarchive

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/onbeat/onbeat/archive"
)

const (
	// chunkRows and chunkBytes are how much one statement adds at most.
	chunkRows  = 5000
	chunkBytes = 8 << 20
)

// errStill refuses a batch that leaves no trace of whether it was added.
var errStill = errors.New("a batch with rows must move the position")

// Add implements [archive.Archive], in one transaction. Rows whose key is there are left out: a run that was noted twice is archived
// once.
func (a *store) Add(ctx context.Context, was archive.Position, b archive.Batch) error {
	if err := a.remake(ctx, a.add(ctx, was, b)); err != nil {
		return fmt.Errorf("archive %d entries: %w", len(b.Entries), a.fault(ctx, err))
	}
	return nil
}

func (a *store) add(ctx context.Context, was archive.Position, b archive.Batch) error {
	if !empty(&b) && same(b.Next, was) {
		return errStill
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ran, ranges := split(b.Entries)
	if err := a.engine.prepare(ctx, ran); err != nil {
		return err
	}
	tx, err := a.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after Commit it does nothing
	// The position first: its lock keeps another instance from the same work.
	if err := a.move(ctx, tx, was, b.Next); err != nil {
		return err
	}
	for _, s := range b.Schedules { // a row is replaced, or leaves with its schedule
		if _, err := tx.ExecContext(ctx, "delete from onbeat_schedules where namespace = $1 and schedule = $2", a.namespace, name(s.Name)); err != nil {
			return err
		}
	}
	for _, of := range []struct {
		*table
		rows []row
	}{{runs, ran}, {fates, ranges}, {events, eventsOf(b.Events)}, {revisions, revisionsOf(b.Revisions)}, {losses, lossesOf(b.Losses)}, {schedules, keptOf(b.Schedules)}} {
		for rest := of.rows; len(rest) > 0; {
			n := chunk(rest)
			if err := a.engine.insert(ctx, tx, of.table, a.namespace, rest[:n]); err != nil {
				return err
			}
			rest = rest[n:]
		}
	}
	return tx.Commit()
}

// chunk returns how many of the rows one statement takes, at least one.
func chunk(rows []row) int {
	bytes := 0
	for i, r := range rows {
		if bytes += weight(r); i == chunkRows || i > 0 && bytes > chunkBytes {
			return i
		}
	}
	return len(rows)
}

const movePosition = `update onbeat_positions
	set history = $1, runs = $2, events = $3, schedules = $4, read = $5, lost = $6, at = $7, history_added = $8, runs_added = $9
	where namespace = $10 and history = $11 and runs = $12 and events = $13 and schedules = $14 and read = $15 and lost = $16`

const firstPosition = `insert into onbeat_positions (namespace, history, runs, events, schedules, read, lost, at, history_added, runs_added, since, keep_ms)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict (namespace) do nothing`

// same reports whether two positions are the same place.
func same(p, q archive.Position) bool {
	return p.History == q.History && p.Runs == q.Runs && p.Events == q.Events && p.Schedules == q.Schedules && p.Read == q.Read && p.Lost == q.Lost
}

func empty(b *archive.Batch) bool {
	return len(b.Entries) == 0 && len(b.Events) == 0 && len(b.Revisions) == 0 && len(b.Losses) == 0 && len(b.Schedules) == 0
}

// move moves the position, if it is where it was.
func (a *store) move(ctx context.Context, tx *sql.Tx, was, next archive.Position) error {
	when := a.engine.time(at(next.At))
	n, err := changed(tx.ExecContext(ctx, movePosition, text(next.History), text(next.Runs), text(next.Events), next.Schedules, next.Read,
		next.Lost, when, next.HistoryAdded, next.RunsAdded, a.namespace, text(was.History), text(was.Runs), text(was.Events), was.Schedules, was.Read, was.Lost))
	if n == 0 && err == nil && same(was, archive.Position{}) {
		n, err = changed(tx.ExecContext(ctx, firstPosition, a.namespace, text(next.History), text(next.Runs), text(next.Events),
			next.Schedules, next.Read, next.Lost, when, next.HistoryAdded, next.RunsAdded, a.engine.time(at(next.Since)), a.keep.Milliseconds()))
	}
	if n == 0 && err == nil {
		return archive.ErrMoved
	}
	return err
}

// Position implements [archive.Archive].
func (a *store) Position(ctx context.Context) (archive.Position, error) {
	p, _, err := a.position(ctx)
	if err = a.remake(ctx, err); err != nil {
		return archive.Position{}, fmt.Errorf("read the position in the archive: %w", a.fault(ctx, err))
	}
	return p, nil
}

// position also returns up to when rows may have been removed.
func (a *store) position(ctx context.Context) (p archive.Position, trimmed moment, err error) {
	var when, since moment
	err = a.query(ctx, func(r *sql.Rows) error {
		return r.Scan(&p.History, &p.Runs, &p.Events, &p.Schedules, &p.Read, &p.Lost, &when, &p.HistoryAdded, &p.RunsAdded, &since, &trimmed)
	}, "select history, runs, events, schedules, read, lost, at, history_added, runs_added, since, trimmed from onbeat_positions where namespace = $1", a.namespace)
	p.At, p.Since = when.Time, since.Time
	return p, trimmed, err
}
