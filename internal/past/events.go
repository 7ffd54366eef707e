package past

import (
	"context"
	"slices"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

// Events returns the newest events since a moment (zero: ever), the newest last: at most limit, or 100 if limit is not
// positive.
func (p *Past) Events(ctx context.Context, since time.Time, limit int) ([]queue.Event, error) {
	if limit <= 0 {
		limit = 100
	}
	list, err := p.q.Events(ctx, since, limit)
	if err != nil || p.source == nil || len(list) >= limit {
		return list, err
	}
	if all, err := p.hasEvents(ctx, lastBefore(since)); all || err != nil {
		return list, err
	}
	a, err := p.Archive(ctx)
	if err != nil {
		return list, err
	}
	first := time.Time{}
	if len(list) > 0 {
		first = list[0].At
	}
	older, err := a.Events(ctx, since, first, limit)
	if err != nil {
		return list, err
	}
	older = slices.DeleteFunc(older, func(e archive.Event) bool { return len(list) > 0 && !history.Before(e.ID, list[0].ID) })
	older = older[max(len(older)-(limit-len(list)), 0):]
	return append(eventsOf(older), list...), nil
}

// hasEvents reports whether Redis has all events that came after an ID.
func (p *Past) hasEvents(ctx context.Context, id string) (bool, error) {
	if met, err := p.q.EventsUpTo(ctx, id); err != nil || met != "" {
		return err == nil, err
	}
	if first, err := p.q.EventsSince(ctx); err != nil || !first.IsZero() {
		return false, err
	}
	return p.whole(ctx)
}

// EventsAfter returns the events after the one with an ID, and since a moment (zero: ever), the oldest first: at most limit.
func (p *Past) EventsAfter(ctx context.Context, id string, since time.Time, limit int) ([]queue.Event, error) {
	if p.source == nil {
		return p.q.EventsAfter(ctx, id, since, limit)
	}
	from := id
	if since.After(history.At(id)) {
		from = lastBefore(since)
	}
	if all, err := p.hasEvents(ctx, from); all || err != nil {
		if err != nil {
			return nil, err
		}
		return p.q.EventsAfter(ctx, id, since, limit)
	}
	a, err := p.Archive(ctx)
	if err != nil {
		return nil, err
	}
	old, err := a.EventsAfter(ctx, from, limit)
	if err != nil || len(old) >= limit {
		return eventsOf(old), err
	}
	list := eventsOf(old)
	if len(list) > 0 {
		from = list[len(list)-1].ID
	}
	rest, err := p.q.EventsAfter(ctx, from, since, limit-len(list))
	return append(list, rest...), err
}

func eventsOf(list []archive.Event) []queue.Event {
	out := make([]queue.Event, len(list))
	for i, e := range list {
		out[i] = queue.Event{ID: e.ID, At: e.At, Kind: e.Kind, Fields: e.Fields}
	}
	return out
}

// RevisionsBefore returns the revisions of a schedule before one with a number (0: all), the newest first, as far as the archive
// has them: at most limit. First says that Redis knows of none before. It returns none without an archive.
func (p *Past) RevisionsBefore(ctx context.Context, name string, number int64, first bool, limit int) ([]queue.Revision, error) {
	if p.source == nil {
		return nil, nil
	}
	if first {
		if whole, err := p.whole(ctx); whole || err != nil {
			return nil, err
		}
	}
	a, err := p.Archive(ctx)
	if err != nil {
		return nil, err
	}
	found, err := a.Revisions(ctx, name, number, limit)
	list := make([]queue.Revision, len(found))
	for i, r := range found {
		list[i] = queue.Revision{Number: r.Number, At: r.At, What: r.What, Who: r.Who, Definition: r.Definition}
	}
	return list, err
}
