package archive

import "errors"

// The errors of an archive that callers tell apart. Match with errors.Is.
var (
	// ErrMoved is returned by [Archive.Add] if the position is not where the caller believes: another instance archives too, or
	// the answer to an earlier Add was lost. Nothing was added. Read the position anew.
	ErrMoved = errors.New("the position in the archive has moved")
	// ErrUnavailable: no connection, or it broke, or the database cannot serve in time. An Add may or may not have happened; its
	// position says which. Try again with backoff, and with a smaller batch: one that takes over a minute never passes.
	ErrUnavailable = errors.New("the archive's database cannot serve now")
	// ErrFull: the database has no room for more. Nothing was added. Make room, or shorten the time of keeping.
	ErrFull = errors.New("the archive's database is full")
	// ErrDenied: the database refuses the user, or the user may not do this, or there is no such database or file.
	ErrDenied = errors.New("the archive's database denies access")
	// ErrTables: the tables are missing, or older than this release. If the caller asked to leave them as they are, they stay so.
	// Else Position, Add and Trim have made them again by then: the archived history is gone.
	ErrTables = errors.New("the archive's tables are missing, or not those of this release")
)

// Retryable reports whether the same call may succeed a moment later without help from a person. After another error a person has
// to act; a follower retries all the same, because it does not learn when the person has acted.
func Retryable(err error) bool { return errors.Is(err, ErrUnavailable) }
