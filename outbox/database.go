package outbox

import (
	"context"
	"database/sql"
	"time"
)

// Opener says where the table is, and opens its database. [SQL] is one.
type Opener interface {
	// Validate refuses what cannot be opened with a [*task.FieldError], which does not show a password. It connects to nothing.
	Validate() error
	// Open returns the database, without connecting to it yet.
	Open() (Database, error)
	// String says where the database is, without a password.
	String() string
}

// Database has the table, or will. No statement of it may wait without an end.
type Database struct {
	*sql.DB
	// Kind says how it is spoken to.
	Kind Kind
	// Poll is how often a mover looks for tasks of which it was not told. Default 1s.
	Poll time.Duration
	// Listen calls told when it begins to listen, because rows may have come before, and then for each time that rows are added. It
	// returns when ctx ends, or when it hears nothing more; then it is called again. Nil: movers only look.
	Listen func(ctx context.Context, told func())
}

// Kind is a kind of database.
type Kind int

// The kinds of databases that can have the table.
const (
	PostgreSQL Kind = iota
	SQLite
)

func (k Kind) dialect() *dialect {
	if k == SQLite {
		return &sqlite
	}
	return &postgres
}

const defaultPoll = time.Second

// Migrate makes the table, if it is not there. Movers do so too, when they start; a program that adds tasks before an instance has
// run calls it, or has the statements of docs/outbox.md among its own migrations.
func Migrate(ctx context.Context, db *sql.DB) error {
	kind := PostgreSQL
	var version string
	if db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version) == nil {
		kind = SQLite
	}
	return kind.dialect().migrate(ctx, db)
}
