package outbox

import (
	"context"
	"time"

	"github.com/onbeat/onbeat/internal/database"
	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// SQL is an [Opener] of a database by its URL: PostgreSQL from 13 on, or a file of SQLite. The program imports the database that it
// uses: package postgres of onbeat, or modernc.org/sqlite.
type SQL struct {
	// URL is required: postgres://user:password@host:5432/name, or sqlite:///absolute/path or sqlite://relative/path.
	URL string
	// Poll is how often a mover looks for tasks of which it was not told, 50ms to 1h. Default 1s. PostgreSQL tells movers of tasks
	// at once; SQLite does not.
	Poll time.Duration
}

const (
	minPoll = 50 * time.Millisecond
	maxPoll = time.Hour
)

// Validate returns a [*task.FieldError] for a URL of another kind of database, or one that cannot be read, and for a Poll that is
// out of range. No error shows a password. It does not connect.
func (c SQL) Validate() error {
	_, err := c.parse()
	return err
}

func (c SQL) parse() (*database.Address, error) {
	if c.Poll != 0 && (c.Poll < minPoll || c.Poll > maxPoll) {
		return nil, &task.FieldError{Field: "outbox.poll", Value: c.Poll.String(), Reason: "out of range", Hint: "50ms to 1h; leave it out for 1s"}
	}
	return database.Parse("outbox", c.URL)
}

// pragmas are for each connection to SQLite.
const pragmas = "_txlock=immediate&_pragma=busy_timeout(5000)"

// Open returns the database, without connecting to it yet.
func (c SQL) Open() (Database, error) {
	where, err := c.parse()
	if err != nil {
		return Database{}, err
	}
	db, err := where.Open(pragmas, "")
	if err != nil {
		return Database{}, err
	}
	db.SetMaxOpenConns(2)
	db.SetConnMaxIdleTime(time.Minute)
	opened := Database{DB: db, Kind: SQLite, Poll: c.Poll}
	if where.Postgres != nil {
		opened.Kind = PostgreSQL
		opened.Listen = func(ctx context.Context, told func()) { where.Postgres.Listen(ctx, "onbeat_outbox", told) }
	}
	return opened, nil
}

// String returns the URL without its password.
func (c SQL) String() string { return secret.URL(c.URL) }
