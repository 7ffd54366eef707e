// Package archive keeps what became of every run in an SQL database, longer than Redis does.
package archive

import (
	"context"
	"errors"
	"time"

	"github.com/onbeat/onbeat/history"
)

// ErrMoved is returned by [Archive.Add] if the position is not where the caller believes: another instance archives too, or the
// answer to an earlier Add was lost. Nothing was added. Read the position anew.
var ErrMoved = errors.New("the position in the archive has moved")

// Retryable reports whether the same call may succeed a moment later without help from a person.
func Retryable(err error) bool { return false }

// Redacted returns the URL of an archive without its password.
func Redacted(rawURL string) string { return "" }

// Archive is a namespace's part of an SQL database. It is safe for concurrent use.
type Archive struct{}

// Open opens the database, and makes or migrates its tables under a lock.
func Open(ctx context.Context, c Config) (*Archive, error) { return nil, errors.ErrUnsupported }

// Close closes the connections.
func (a *Archive) Close() error { return nil }

// Position returns how far the namespace is archived. It is zero if nothing was archived yet.
func (a *Archive) Position(ctx context.Context) (Position, error) {
	return Position{}, errors.ErrUnsupported
}

// Add archives a batch and moves the position, in one transaction, if the position is still was; else it returns [ErrMoved].
func (a *Archive) Add(ctx context.Context, was Position, b Batch) error { return errors.ErrUnsupported }

// History calls fn with each entry noted since a moment (zero: ever), the oldest first, with its notes as they were. It returns
// at the end, or with the error of fn. It reads a page at a time.
func (a *Archive) History(ctx context.Context, since time.Time, fn func(history.Entry) error) error {
	return errors.ErrUnsupported
}

// HistoryBefore calls fn with the entries before the one with an ID ("": all), the newest first, until fn returns false. With
// a schedule, entries have that schedule's notes alone, and those without any are left out.
func (a *Archive) HistoryBefore(ctx context.Context, id, schedule string, fn func(history.Entry) bool) error {
	return errors.ErrUnsupported
}

// Runs returns the notes of one task, the oldest first: the newest 1,000.
func (a *Archive) Runs(ctx context.Context, taskID string) ([]history.Note, error) {
	return nil, errors.ErrUnsupported
}

// Events returns the newest events from a moment up to another one (zero: no bound), the newest last: at most limit, or 100 if
// limit is not positive.
func (a *Archive) Events(ctx context.Context, from, to time.Time, limit int) ([]Event, error) {
	return nil, errors.ErrUnsupported
}

// Revisions returns the revisions of a schedule whose number is below another (0: all), the newest first: at most limit, or 100
// if limit is not positive.
func (a *Archive) Revisions(ctx context.Context, schedule string, before int64, limit int) ([]Revision, error) {
	return nil, errors.ErrUnsupported
}

// Since returns the moment from which on the archive has everything but its losses. It is zero if the archive has everything
// that ever was, and the present if nothing was archived yet.
func (a *Archive) Since(ctx context.Context) (time.Time, error) {
	return time.Time{}, errors.ErrUnsupported
}

// Lost returns the spans that ended after a moment whose entries were lost before they could be read, the oldest first.
func (a *Archive) Lost(ctx context.Context, from time.Time) ([]Loss, error) {
	return nil, errors.ErrUnsupported
}

// Trim removes what is older than the time of keeping, in small steps, until nothing of that is left or ctx is done. On
// PostgreSQL it also makes the partitions of the next days. It may run beside Add.
func (a *Archive) Trim(ctx context.Context, now time.Time) error { return errors.ErrUnsupported }
