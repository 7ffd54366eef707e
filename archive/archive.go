package archive

import (
	"context"
	"time"

	"github.com/rs/zerolog"
)

// Opener says where an archive is, and opens it. Package sqlarchive has one.
type Opener interface {
	// Validate refuses what cannot be an archive with a [*task.FieldError], which does not show a password. It connects to nothing.
	Validate() error
	// Open opens the archive of a namespace, and makes in it what is missing. The log receives what a person should know. The
	// error may be [ErrUnavailable]; then try again later.
	Open(ctx context.Context, namespace string, log zerolog.Logger) (Archive, error)
	// String says where the archive is, without a password.
	String() string
}

// Archive keeps what happened in a namespace. It is safe for concurrent use. Its errors match those of this package, and show no
// password.
type Archive interface {
	// Add archives a batch and moves the position, both or neither, if the position is still was; else it returns [ErrMoved]. A run
	// that was noted twice is archived once.
	//
	// After [ErrUnavailable] the batch may have been added; read the position.
	Add(ctx context.Context, was Position, b Batch) error
	// Position returns how far the namespace is archived. It is zero if nothing was archived yet.
	Position(ctx context.Context) (Position, error)

	// History calls fn with each entry of the history since a moment (zero: ever), the oldest first, with its notes as they were. It
	// returns at the end, or with the error of fn. Runs that no schedule made are not in the history.
	History(ctx context.Context, since time.Time, fn func(Entry) error) error
	// HistoryOf is History of one schedule, if it is not "": of its ranges, and of the tasks that it made.
	HistoryOf(ctx context.Context, schedule string, since time.Time, fn func(Entry) error) error
	// HistoryBefore calls fn with the entries of the history before the one with an ID ("": all), the newest first, until fn
	// returns false. With a schedule, entries have the notes of that schedule's ranges and of the tasks that it made alone, and
	// those without any are left out.
	HistoryBefore(ctx context.Context, id, schedule string, fn func(Entry) bool) error
	// Runs returns the notes of one task, the oldest first: the newest 1,000.
	Runs(ctx context.Context, taskID string) ([]Note, error)
	// Events returns the newest events from a moment up to another one (zero: no bound), the newest last: at most limit, or 100 if
	// limit is not positive.
	Events(ctx context.Context, from, to time.Time, limit int) ([]Event, error)
	// EventsAfter returns the events after the one with an ID, the oldest first: at most limit, or 100 if limit is not positive.
	EventsAfter(ctx context.Context, id string, limit int) ([]Event, error)
	// Revisions returns the revisions of a schedule whose number is below another (0: all), the newest first: at most limit, or 100
	// if limit is not positive.
	Revisions(ctx context.Context, schedule string, before int64, limit int) ([]Revision, error)

	// Schedules returns the schedules that there were when the namespace was last archived, by name, after a name ("": all): at
	// most limit, or 100 if limit is not positive. Trim leaves them.
	Schedules(ctx context.Context, after string, limit int) ([]Schedule, error)

	// Since returns the moment from which on the archive has everything but its losses. It is zero if the archive has everything
	// that ever was, and the present if nothing was archived yet.
	Since(ctx context.Context) (time.Time, error)
	// Lost returns the spans that ended after a moment whose entries were lost before they could be read, the oldest first.
	Lost(ctx context.Context, from time.Time) ([]Loss, error)

	// Trim removes what is older than the time of keeping, until nothing of that is left or ctx is done. It may run beside Add.
	//
	// Of the revisions of a schedule the one that was in force at the edge stays.
	Trim(ctx context.Context, now time.Time) error
	// Close ends the use of the archive.
	Close() error
}
