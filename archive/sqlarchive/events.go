package sqlarchive

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/onbeat/onbeat/archive"
)

// EventsAfter implements [archive.Archive].
func (a *store) EventsAfter(ctx context.Context, id string, limit int) ([]archive.Event, error) {
	p := placeOf(id)
	var list []archive.Event
	err := a.query(ctx, func(rows *sql.Rows) error {
		var e event
		if err := rows.Scan(e.values()...); err != nil {
			return err
		}
		list = append(list, e.event())
		return nil
	}, "select "+events.list()+" from onbeat_events where namespace = $1 and (at, entry) > ($2, $3) order by at, entry, kind limit $4",
		a.namespace, a.engine.time(p.noted), p.entry, orHundred(limit))
	if err != nil {
		return nil, fmt.Errorf("read the archived events: %w", a.fault(ctx, err))
	}
	return list, nil
}
