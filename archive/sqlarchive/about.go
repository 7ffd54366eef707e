package sqlarchive

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onbeat/onbeat/archive"
)

// Events implements [archive.Archive].
func (a *store) Events(ctx context.Context, from, to time.Time, limit int) ([]archive.Event, error) {
	first, last := ofMs(0), ofMs(lastMs)
	if !from.IsZero() {
		first = at(from)
	}
	if !to.IsZero() {
		last = at(to)
	}
	var list []archive.Event
	err := a.query(ctx, func(rows *sql.Rows) error {
		var e event
		if err := rows.Scan(e.values()...); err != nil {
			return err
		}
		list = append(list, e.event())
		return nil
	}, "select "+events.list()+" from onbeat_events where namespace = $1 and at >= $2 and at <= $3 order by at desc, entry desc, kind desc limit $4",
		a.namespace, a.engine.time(first), a.engine.time(last), orHundred(limit))
	if err != nil {
		return nil, fmt.Errorf("read the archived events: %w", a.fault(ctx, err))
	}
	slices.Reverse(list)
	return list, nil
}

func orHundred(limit int) int {
	if limit <= 0 {
		return 100
	}
	return limit
}

// Revisions implements [archive.Archive].
func (a *store) Revisions(ctx context.Context, schedule string, before int64, limit int) ([]archive.Revision, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	var list []archive.Revision
	err := a.query(ctx, func(rows *sql.Rows) error {
		var r revision
		if err := rows.Scan(r.values()...); err != nil {
			return err
		}
		list = append(list, r.revision())
		return nil
	}, "select "+revisions.list()+" from onbeat_revisions where namespace = $1 and schedule = $2 and revision < $3 order by revision desc limit $4",
		a.namespace, name(schedule), before, orHundred(limit))
	if err != nil {
		return nil, fmt.Errorf("read the archived revisions of schedule %q: %w", schedule, a.fault(ctx, err))
	}
	return list, nil
}

// Schedules implements [archive.Archive].
func (a *store) Schedules(ctx context.Context, after string, limit int) ([]archive.Schedule, error) {
	var list []archive.Schedule
	err := a.query(ctx, func(rows *sql.Rows) error {
		var k kept
		if err := rows.Scan(k.values()...); err != nil {
			return err
		}
		list = append(list, archive.Schedule(k))
		return nil
	}, "select "+schedules.list()+" from onbeat_schedules where namespace = $1 and schedule > $2 order by schedule limit $3",
		a.namespace, name(after), orHundred(limit))
	if err != nil {
		return nil, fmt.Errorf("read the archived schedules: %w", a.fault(ctx, err))
	}
	return list, nil
}

// Since implements [archive.Archive].
func (a *store) Since(ctx context.Context) (time.Time, error) {
	p, trimmed, err := a.position(ctx)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("read the position in the archive: %w", a.fault(ctx, err))
	case same(p, archive.Position{}):
		return time.Now(), nil
	case trimmed.After(p.Since):
		return trimmed.Time, nil
	}
	return p.Since, nil
}

// Lost implements [archive.Archive].
func (a *store) Lost(ctx context.Context, from time.Time) ([]archive.Loss, error) {
	var list []archive.Loss
	err := a.query(ctx, func(rows *sql.Rows) error {
		var l loss
		if err := rows.Scan(l.values()...); err != nil {
			return err
		}
		list = append(list, l.loss())
		return nil
	}, "select "+losses.list()+" from onbeat_losses where namespace = $1 and until > $2 order by until, since", a.namespace,
		a.engine.time(ofMs(max(0, from.UnixMilli()))))
	if err != nil {
		return nil, fmt.Errorf("read what the archive lost: %w", a.fault(ctx, err))
	}
	return list, nil
}
