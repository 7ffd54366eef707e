package archiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/history"
	"github.com/onbeat/onbeat/internal/queue"
	"github.com/onbeat/onbeat/task"
)

// How long the steps may take.
const (
	readTime = 10 * time.Second // a reading of Redis, or of the position
	addTime  = time.Minute      // a batch
	tidyTime = 5 * time.Minute  // a round of the retention
)

// tidyEvery is how often the retention is seen to.
const tidyEvery = 10 * time.Minute

// A page is how many entries of a stream one step reads. An entry has the runs of one batch, so the page shrinks and grows
// with what the last ones held.
const (
	firstPage = 50
	mostPage  = 500
	mostNotes = 10_000 // in a page, about
)

// mostEvents and mostSchedules bound what else one step reads.
const (
	mostEvents    = 500
	mostSchedules = 100
)

// askAfter is after how many steps without anything new the archive is asked for its position again: 10 s, by default.
const askAfter = 10

// term is what an archiver knows in one term of its instance.
type term struct {
	*Archiver
	by      who
	at      archive.Position
	reached int64     // the highest version of a schedule up to which all is archived
	sure    bool      // at is what the archive says
	idle    int       // steps without anything new since the archive was last asked
	since   time.Time // the namespace is archived since then; zero: nothing was yet
	older   bool      // and since then Redis came back empty
	noted   bool      // Redis knows of both
	page    int
	trims   bool // Redis lets this instance trim
	buffer
}

// found is what one step read.
type found struct {
	history, runs part[history.Entry]
	events        part[queue.Event]
	revisions     []archive.Revision
	changed       []archive.Schedule
	lost          *archive.Loss // of revisions
	schedules     int64
	since         time.Time
	moreSchedules bool
	follows       bool // something was archived before
	anew          bool // and is gone, with the tables that had it
}

// begins is the time of the first entry that was read of the history, or now if none was.
func (f *found) begins() time.Time {
	if len(f.history.items) > 0 {
		return f.history.items[0].At
	}
	return time.Now()
}

func (f *found) more() bool {
	return f.history.more || f.runs.more || f.events.more || f.moreSchedules
}

// losses are what each stream lost, by its name.
func (f *found) losses() (list []archive.Loss) {
	for _, x := range []struct {
		stream string
		loss   *archive.Loss
	}{{"history", f.history.loss}, {"runs", f.runs.loss}, {"events", f.events.loss}, {"revisions", f.lost}} {
		if x.loss != nil {
			x.loss.Stream = x.stream
			list = append(list, *x.loss)
		}
	}
	return list
}

// step archives one batch, and reports whether there is more.
func (t *term) step(ctx context.Context) (more bool, err error) {
	a, err := t.open(ctx)
	if err != nil {
		return false, err
	}
	f, err := t.read(ctx)
	if err != nil {
		return false, err
	}
	if b := t.batch(&f); b.Next != t.at {
		switch err := t.add(ctx, a, b); {
		case errors.Is(err, archive.ErrMoved): // another instance archived it meanwhile
			return true, nil
		case err != nil:
			t.behind(t.left(&f))
			t.page = max(1, t.page/2) // a batch that takes too long never passes
			return false, fmt.Errorf("archive a batch: %w", err)
		}
		t.report(ctx, t.by, &f)
		t.note(ctx, &f)
		t.idle = 0
	} else {
		t.idle++
	}
	t.size(&f)
	if f.more() {
		t.behind(t.left(&f))
		return true, nil
	}
	t.behind(0)
	t.trim(ctx, &f)
	return false, nil
}

// open opens the archive and reads the position, if that was not done yet, and again after a while without anything new: the tables may
// be gone.
func (t *term) open(ctx context.Context) (archive.Archive, error) {
	if t.sure && t.idle < askAfter {
		return t.source.Archive(ctx)
	}
	if !t.sure {
		if err := t.look(ctx); err != nil { // first, because a database that is away may take its time to say so
			return nil, err
		}
	}
	t.sure, t.idle = false, 0
	a, err := t.source.Archive(ctx)
	if err != nil {
		return nil, err
	}
	ctx, done := context.WithTimeout(ctx, readTime)
	defer done()
	at, err := a.Position(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the position in the archive: %w", err)
	}
	since, older, err := t.q.ArchivedSince(ctx)
	if err != nil {
		return nil, err
	}
	if t.noted = !since.IsZero(); t.noted {
		t.since, t.older = since, older
	} else if !t.since.IsZero() {
		t.older = true
	}
	if at.Schedules < t.at.Schedules { // the tables are older, or gone
		t.reached = 0
	}
	t.at, t.sure = at, true
	return a, nil
}

// note notes in Redis since when the namespace is archived, once that is so. It tells an archive that is new from one that has lost
// all it had.
func (t *term) note(ctx context.Context, f *found) {
	if t.noted && !f.anew && f.history.loss == nil {
		return
	}
	ctx, done := context.WithTimeout(ctx, readTime)
	defer done()
	since := f.begins()
	if f.follows { // Redis came back empty: the archive has more than it knows of
		if since = t.at.Since; since.IsZero() {
			since = time.UnixMilli(1)
		}
	}
	if err := t.q.NoteArchived(ctx, since, f.follows); err != nil {
		t.log.Debug().Err(err).Msg("could not note since when there is an archive")
		return
	}
	t.since, t.older, t.noted = since, f.follows, true
}

// look tells how much waits, as far as is known before the archive has said its position.
func (t *term) look(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, readTime)
	defer done()
	h, err := t.q.HistoryTail(ctx, "", 0)
	if err != nil {
		return err
	}
	r, err := t.q.RunsTail(ctx, "", 0)
	if err != nil {
		return err
	}
	f := found{history: part[history.Entry]{was: h.Stream}, runs: part[history.Entry]{was: r.Stream}}
	t.behind(t.left(&f))
	return nil
}

// read reads what is new in Redis, a page of each kind.
func (t *term) read(ctx context.Context) (f found, err error) {
	ctx, done := context.WithTimeout(ctx, readTime)
	defer done()
	if t.at.History == "" {
		if f.since, err = t.q.HistorySince(ctx); err != nil {
			return f, err
		}
	}
	if f.history, err = t.history.read(ctx, place{t.at.History, t.at.HistoryAdded}, t.page); err != nil {
		return f, err
	}
	if f.runs, err = t.runs.read(ctx, place{t.at.Runs, t.at.RunsAdded}, t.page); err != nil {
		return f, err
	}
	if f.events, err = t.events.read(ctx, place{id: t.at.Events}, mostEvents); err != nil {
		return f, err
	}
	f.follows = t.at != (archive.Position{})
	noted := func(e *history.Entry) time.Time { return e.At }
	if f.follows {
		f.history.drops(place{t.at.History, t.at.HistoryAdded}, t.at.At, noted)
		f.runs.drops(place{t.at.Runs, t.at.RunsAdded}, t.at.At, noted)
	}
	if f.anew = !f.follows && !t.since.IsZero(); f.anew {
		f.history.begins(t.since, t.older, noted)
		f.runs.begins(t.since, t.older, noted)
		f.events.begins(t.since, t.older, func(e *queue.Event) time.Time { return e.At })
	}
	return f, t.readSchedules(ctx, &f)
}

// batch is what a step archives. Its position is that of t if there is nothing.
func (t *term) batch(f *found) archive.Batch {
	b := archive.Batch{Entries: slices.Concat(f.history.items, f.runs.items), Revisions: f.revisions, Schedules: f.changed, Next: t.at}
	for _, e := range f.events.items {
		b.Events = append(b.Events, archive.Event{ID: e.ID, At: e.At, Kind: e.Kind, Fields: e.Fields})
	}
	for _, l := range f.losses() {
		b.Losses = append(b.Losses, l)
		b.Next.Lost += l.Entries
	}
	n := &b.Next
	n.History, n.HistoryAdded = f.history.next.id, f.history.next.added
	n.Runs, n.RunsAdded = f.runs.next.id, f.runs.next.added
	n.Events, n.Schedules = f.events.next.id, f.schedules
	n.Read += int64(len(b.Entries))
	if t.at.History == "" && n.History != "" && n.Since.IsZero() {
		n.Since = f.since
	}
	return b
}

func (t *term) add(ctx context.Context, a archive.Archive, b archive.Batch) error {
	ctx, done := context.WithTimeout(ctx, addTime)
	defer done()
	b.Next.At = time.Now()
	if err := a.Add(ctx, t.at, b); err != nil {
		t.sure = false // the answer may be lost, and the batch there
		return err
	}
	t.at = b.Next
	return nil
}

// behind tells how many entries wait.
func (t *term) behind(entries int64) {
	t.waits.Store(entries)
	t.Archiver.behind(entries)
}

// left is how many entries wait behind the position.
func (t *term) left(f *found) int64 {
	return left(place{t.at.History, t.at.HistoryAdded}, f.history.was) + left(place{t.at.Runs, t.at.RunsAdded}, f.runs.was)
}

// size chooses the next page by what this one held.
func (t *term) size(f *found) {
	notes, fits := 0, mostPage
	for _, p := range []*part[history.Entry]{&f.history, &f.runs} {
		for i := range p.items {
			notes += len(p.items[i].Notes)
		}
		if len(p.items) > 0 {
			fits = min(fits, p.fits)
		}
	}
	switch {
	case notes > mostNotes:
		t.page /= 2
	case notes < mostNotes/4 && (f.history.more || f.runs.more):
		t.page *= 2
	}
	t.page = max(1, min(t.page, fits))
}

// trim removes from Redis what is archived, down to what it keeps without an archive. All that was there when this step began
// to read is archived now.
func (t *term) trim(ctx context.Context, f *found) {
	if !t.trims {
		return
	}
	ctx, done := context.WithTimeout(ctx, readTime)
	defer done()
	_, err := t.q.TrimHistory(ctx, f.history.was)
	if err == nil {
		_, err = t.q.TrimRuns(ctx, f.runs.was, t.needed())
	}
	if errors.Is(err, task.ErrDenied) {
		t.trims = false
		t.log.Warn().Err(err).Msg("cannot trim what is archived: redis keeps it")
	}
}

// keepTidy sees to the retention of the archive, beside what the term archives.
func (t *term) keepTidy(ctx context.Context) {
	for wait := time.Duration(0); pause(ctx, wait); wait = tidyEvery {
		if err := t.tidy(ctx); err != nil && ctx.Err() == nil {
			t.log.Warn().Err(err).Msg("could not remove expired rows of the archive")
		}
	}
}

func (t *term) tidy(ctx context.Context) error {
	ctx, done := context.WithTimeout(ctx, tidyTime)
	defer done()
	a, err := t.source.Archive(ctx)
	if err != nil {
		return nil //nolint:nilerr // step tells of it
	}
	now, err := t.q.Now(ctx)
	if err != nil {
		return err
	}
	if own := time.Now(); own.Before(now) {
		now = own // removed rows are gone: Redis with a clock far ahead must not empty the archive
	}
	return a.Trim(ctx, now)
}

func ms(at time.Time) string { return strconv.FormatInt(at.UnixMilli(), 10) }

// entriesText is "" if the number is not known.
func entriesText(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
