package archive

import (
	"cmp"
	"time"

	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/task"
)

// Config says where an archive is, and how long it keeps what it has.
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
	// Namespace is whose history it is. Several namespaces may share one database.
	Namespace string
	// Keep is how long rows are kept, at least a day. Default 90 days.
	Keep time.Duration
	// AsIs opens the database as it is: nothing is made or migrated. If its tables are missing, or older than this release, the
	// error is [ErrTables]. It is for looking on.
	AsIs bool
	// Log receives what a person should know. The zero Logger discards it.
	Log zerolog.Logger
}

const (
	defaultKeep = 90 * day
	day         = 24 * time.Hour
)

func (c Config) withDefaults() Config {
	c.Keep = cmp.Or(c.Keep, defaultKeep)
	return c
}

// Validate refuses an invalid URL or time of keeping with a [*task.FieldError], which does not show the password. It connects to
// nothing.
func (c Config) Validate() error {
	if c.Keep != 0 && c.Keep < day {
		return &task.FieldError{Field: "archive.keep", Value: c.Keep.String(), Reason: "shorter than a day", Hint: "such as 90d"}
	}
	_, err := parseURL(c.URL)
	return err
}
