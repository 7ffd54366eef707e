package archive

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"slices"
	"time"
)

// Events returns the newest events from a moment up to another one (zero: no bound), the newest last: at most limit, or 100 if
// limit is not positive.
func (a *Archive) Events(ctx context.Context, from, to time.Time, limit int) ([]Event, error) {
	first, last := ofMs(0), ofMs(lastMs)
	if !from.IsZero() {
		first = at(from)
	}
	if !to.IsZero() {
		last = at(to)
	}
	var list []Event
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

// Revisions returns the revisions of a schedule whose number is below another (0: all), the newest first: at most limit, or 100
// if limit is not positive.
func (a *Archive) Revisions(ctx context.Context, schedule string, before int64, limit int) ([]Revision, error) {
	if before <= 0 {
		before = math.MaxInt64
	}
	var list []Revision
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

// Since returns the moment from which on the archive has everything but its losses. It is zero if the archive has everything
// that ever was, and the present if nothing was archived yet.
func (a *Archive) Since(ctx context.Context) (time.Time, error) {
	p, trimmed, err := a.position(ctx)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("read the position in the archive: %w", a.fault(ctx, err))
	case p.is(Position{}):
		return time.Now(), nil
	case trimmed.After(p.Since):
		return trimmed.Time, nil
	}
	return p.Since, nil
}

// Lost returns the spans that ended after a moment whose entries were lost before they could be read, the oldest first.
func (a *Archive) Lost(ctx context.Context, from time.Time) ([]Loss, error) {
	var list []Loss
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
