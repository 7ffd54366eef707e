package sqlarchive

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/archive"
	"github.com/onbeat/onbeat/internal/database"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// Config says where an archive is, and how long it keeps what it has. It is an [archive.Opener].
type Config struct {
	// URL is where the database is:
	//
	//	postgres://user:password@host:5432/database
	//	sqlite:///var/lib/onbeat/archive.db
	//	sqlite://archive.db
	//
	// The parameters of a PostgreSQL URL are those of libpq, such as sslmode=verify-full. SQLite takes none, and its file must be
	// on a disk of this machine.
	URL string
	// Keep is how long rows are kept, at least a day. Default 90 days.
	Keep time.Duration
	// AsIs opens the database as it is: nothing is made or migrated. If its tables are missing, or older than this release, the
	// error is [archive.ErrTables]. It is for looking on.
	AsIs bool
}

const (
	defaultKeep = 90 * day
	day         = 24 * time.Hour
)

// Validate refuses an invalid URL or time of keeping with a [*task.FieldError], which does not show the password. It connects to
// nothing.
func (c Config) Validate() error {
	_, err := c.parse()
	return err
}

func (c Config) parse() (*database.Address, error) {
	if c.Keep != 0 && c.Keep < day {
		return nil, &task.FieldError{Field: "archive.keep", Value: c.Keep.String(), Reason: "shorter than a day", Hint: "such as 90d"}
	}
	return database.Parse("archive", c.URL)
}

// Open opens the database, and makes or migrates its tables under a lock. Several namespaces may share one database. If the tables
// are of a newer release it says so in the log and goes on: a release can work with the tables of the next one. The error may be
// [archive.ErrUnavailable]; then try again later.
func (c Config) Open(ctx context.Context, namespace string, log zerolog.Logger) (archive.Archive, error) {
	a, err := c.open(ctx, namespace, log)
	if err != nil {
		return nil, err // not a *store, which would not be nil
	}
	return a, nil
}

// String returns the URL without its password.
func (c Config) String() string { return secret.URL(c.URL) }
