package past

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
)

// Past reads what happened in a namespace. It is safe for concurrent use.
type Past struct {
	q      *queue.Queue
	source *archive.Source // nil: there is no archive
}

// Of returns the past of the namespace of a queue. The source is nil if there is no archive.
func Of(q *queue.Queue, source *archive.Source) *Past { return &Past{q: q, source: source} }

// Archived reports whether there is an archive.
func (p *Past) Archived() bool { return p.source != nil }

// Reaches reports whether Redis has the history from a moment on, and so did not come back empty since.
func (p *Past) Reaches(ctx context.Context, since time.Time) (bool, error) {
	met, err := p.q.HistoryUpTo(ctx, lastBefore(since))
	return met != "", err
}

// archiveTime is how long the archive may take to say that it is there. A database that hangs must not take the time of all else that is
// asked.
const archiveTime = 5 * time.Second

// Archive opens the archive, and sees whether it answers. The namespace has one: see [Past.Archived].
func (p *Past) Archive(ctx context.Context) (archive.Archive, error) {
	limited, done := context.WithTimeout(ctx, archiveTime)
	defer done()
	a, err := p.source.Archive(limited)
	if err == nil {
		_, err = a.Position(limited)
	}
	switch {
	case err == nil:
		return a, nil
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("could not ask the archive: %w: no answer in time", archive.ErrUnavailable)
	}
	return nil, fmt.Errorf("could not ask the archive: %w", err)
}

// Behind returns when the first entry of the history was written that is not archived. It is zero if all are, or without an archive.
func (p *Past) Behind(ctx context.Context) (since time.Time, err error) {
	if p.source == nil {
		return since, nil
	}
	a, err := p.Archive(ctx)
	if err != nil {
		return since, err
	}
	at, err := a.Position(ctx)
	if err != nil {
		return since, err
	}
	err = p.q.HistoryAfter(ctx, cmp.Or(at.History, "0-0"), func(e history.Entry) error {
		since = e.At
		return errStop
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return since, err
}

// needed opens the archive, unless it has no more of the history than Redis.
func (p *Past) needed(ctx context.Context) (archive.Archive, error) {
	if whole, err := p.whole(ctx); whole || err != nil {
		return nil, err
	}
	return p.Archive(ctx)
}

// whole reports whether Redis has all of the history that ever was. A Redis that came back empty has not: it no longer knows
// since when the namespace is archived, or begins later than that.
func (p *Past) whole(ctx context.Context) (bool, error) {
	first, err := p.q.HistorySince(ctx)
	if err != nil || !first.IsZero() {
		return false, err
	}
	since, _, err := p.q.ArchivedSince(ctx)
	if err != nil || since.IsZero() {
		return false, err
	}
	t, err := p.q.HistoryTail(ctx, "", 1)
	return len(t.Items) > 0 && !t.Items[0].At.After(since), err
}

// firstPage is how many entries the first call reads; then their size decides.
const firstPage = 50

// errStop ends a reading of the archive.
var errStop = errors.New("enough was read")

// History calls fn with each entry of the history since a moment (zero: ever), the oldest first. It returns at the end, or with
// the error of fn.
func (p *Past) History(ctx context.Context, since time.Time, fn func(history.Entry) error) error {
	return p.HistoryOf(ctx, "", since, fn)
}

// HistoryOf is [Past.History]. Where it reads the archive, entries have the notes of one schedule alone, if it is not "".
func (p *Past) HistoryOf(ctx context.Context, schedule string, since time.Time, fn func(history.Entry) error) error {
	if p.source == nil {
		return p.q.History(ctx, since, fn)
	}
	last := lastBefore(since)
	met, err := p.q.HistoryUpTo(ctx, last)
	if err != nil {
		return err
	}
	r := reading{Past: p, schedule: schedule, fn: fn, last: last, sure: met != ""}
	return r.run(ctx)
}

// reading reads the history on from an entry. It reads entries in the archive that Redis has dropped meanwhile because they
// were archived.
type reading struct {
	*Past
	schedule string
	fn       func(history.Entry) error
	last     string // the entry that was read last
	sure     bool   // nothing is missing between last and the next that Redis has
}

func (r *reading) run(ctx context.Context) error {
	for page := firstPage; ; {
		t, err := r.q.HistoryTail(ctx, r.last, page)
		if err != nil {
			return err
		}
		if !t.There && !r.sure {
			next := ""
			if len(t.Items) > 0 {
				next = t.Items[0].ID
			}
			if err := r.fill(ctx, next); err != nil {
				return err
			}
		}
		r.sure = false
		for _, e := range t.Items {
			if err := r.take(e); err != nil {
				return err
			}
		}
		if !t.More {
			return nil
		}
		page = t.Fits
	}
}

// fill reads in the archive what comes before the next entry that Redis has; "" is the end.
func (r *reading) fill(ctx context.Context, next string) error {
	a, err := r.needed(ctx)
	if a == nil || err != nil {
		return err
	}
	err = a.HistoryOf(ctx, r.schedule, history.At(r.last), func(e history.Entry) error {
		if next != "" && !history.Before(e.ID, next) {
			return errStop
		}
		return r.take(e)
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// take passes an entry on, unless it was read before.
func (r *reading) take(e history.Entry) error {
	if !history.Before(r.last, e.ID) {
		return nil
	}
	r.last = e.ID
	return r.fn(e)
}

// lastBefore is the last ID that an entry before a moment can have.
func lastBefore(since time.Time) string {
	if since.UnixMilli() <= 0 {
		return "0-0"
	}
	return fmt.Sprintf("%d-%d", since.UnixMilli()-1, uint64(1<<64-1))
}

// HistoryBefore calls fn with the entries of the history before the one with an ID ("": all), the newest first, until fn
// returns false. Where it reads the archive, entries have the notes of one schedule alone, if it is not "".
func (p *Past) HistoryBefore(ctx context.Context, id, schedule string, fn func(history.Entry) bool) error {
	going := true
	err := p.q.HistoryBefore(ctx, id, func(e history.Entry) bool {
		id, going = e.ID, fn(e)
		return going
	})
	if err != nil || !going || p.source == nil {
		return err
	}
	a, err := p.needed(ctx)
	if a == nil || err != nil {
		return err
	}
	return a.HistoryBefore(ctx, id, schedule, fn)
}

// Known says of which time the history is known.
type Known struct {
	// From is where it begins; zero: it has all that ever was.
	From time.Time
	// Gaps are the times after From of which entries were lost.
	Gaps []Gap
}

// Gap is a time of which entries of the history are missing.
type Gap struct{ From, To time.Time }

// Known says of which time the history is known that [Past.History] reads from a moment on.
func (p *Past) Known(ctx context.Context, since time.Time) (Known, error) {
	first, err := p.q.HistorySince(ctx)
	if err != nil || p.source == nil {
		return Known{From: first}, err
	}
	if met, err := p.q.HistoryUpTo(ctx, lastBefore(since)); err != nil || met != "" {
		return Known{From: first}, err
	}
	a, err := p.needed(ctx)
	if a == nil || err != nil {
		return Known{From: first}, err
	}
	at, err := a.Position(ctx)
	if err != nil || at.History == "" { // nothing is archived yet
		return Known{From: first}, err
	}
	return p.knownWith(ctx, a, at.History, since)
}

// knownWith is [Past.Known] where the archive goes up to the entry with an ID.
func (p *Past) knownWith(ctx context.Context, a archive.Archive, upTo string, since time.Time) (k Known, err error) {
	if k.From, err = a.Since(ctx); err != nil {
		return k, err
	}
	losses, err := a.Lost(ctx, since)
	if err != nil {
		return k, err
	}
	for _, l := range losses {
		if l.Stream == "history" {
			k.Gaps = append(k.Gaps, Gap{l.From, l.To})
		}
	}
	met, err := p.q.HistoryUpTo(ctx, upTo)
	if err != nil || met != "" {
		return k, err
	}
	t, err := p.q.HistoryTail(ctx, "", 1)
	if len(t.Items) > 0 { // the entries between are lost, and the follower has not noted that yet
		k.Gaps = append(k.Gaps, Gap{history.At(upTo), t.Items[0].At})
	}
	return k, err
}

// Runs returns what the archive knows of the runs of one task, the oldest first. It is nil without an archive.
func (p *Past) Runs(ctx context.Context, id string) ([]history.Note, error) {
	if p.source == nil {
		return nil, nil
	}
	a, err := p.Archive(ctx)
	if err != nil {
		return nil, err
	}
	return a.Runs(ctx, id)
}
