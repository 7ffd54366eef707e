package outbox

import (
	"context"
	"database/sql"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/onbeat/onbeat/task"
)

// Config says where the table is. URL is required.
type Config struct {
	// URL is that of the database: postgres://user:password@host:5432/name, or sqlite:///absolute/path or sqlite://relative/path.
	URL string
	// Poll is how often a mover looks for tasks of which it was not told, 50ms to 1h. Default 1s. PostgreSQL tells movers of tasks
	// at once; SQLite does not.
	Poll time.Duration
}

const (
	defaultPoll = time.Second
	minPoll     = 50 * time.Millisecond
	maxPoll     = time.Hour

	connectTimeout = 5 * time.Second
	keepAlive      = 15 * time.Second
)

// Validate returns a [*task.FieldError] for a URL of another kind of database, or one that cannot be read, and for a Poll that is
// out of range. No error shows a password. It does not connect.
func (c *Config) Validate() error {
	if c.Poll != 0 && (c.Poll < minPoll || c.Poll > maxPoll) {
		return &task.FieldError{Field: "outbox.poll", Value: c.Poll.String(), Reason: "out of range", Hint: "50ms to 1h; leave it out for 1s"}
	}
	_, err := c.dialect()
	return err
}

const urlHint = "postgres://user:password@host:5432/name, or sqlite:///absolute/path"

func refuseURL(reason string) error {
	return &task.FieldError{Field: "outbox.url", Reason: reason, Hint: urlHint}
}

// dialect returns what the URL's kind of database needs.
func (c *Config) dialect() (*dialect, error) {
	scheme, _, _ := strings.Cut(c.URL, "://")
	switch {
	case c.URL == "":
		return nil, refuseURL("missing")
	case scheme == "postgres" || scheme == "postgresql":
		if _, err := pgx.ParseConfig(c.URL); err != nil { // its text may hold parts of a password
			return nil, refuseURL("cannot be read")
		}
		return &postgres, nil
	case scheme == "sqlite" && c.file() != "":
		return &sqlite, nil
	case scheme == "sqlite":
		return nil, refuseURL("names no file")
	}
	return nil, refuseURL("neither PostgreSQL nor SQLite")
}

// file returns the file that a URL of SQLite names, or "". A character such as % or a space is escaped in a URL.
func (c *Config) file() string {
	path, _ := strings.CutPrefix(c.URL, "sqlite://")
	name, err := url.PathUnescape(path)
	if err != nil || strings.ContainsAny(path, "?#:") {
		return ""
	}
	return name
}

// open returns the database, without connecting to it yet. No statement of it may wait without an end, so a dead network is found
// by keepalives.
func (c *Config) open() (*sql.DB, *dialect, error) {
	d, err := c.dialect()
	if err != nil {
		return nil, nil, err
	}
	var db *sql.DB
	if d == &sqlite {
		db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: c.file()}).EscapedPath()+"?_txlock=immediate&_pragma=busy_timeout(5000)")
		if err != nil {
			return nil, nil, refuseURL("cannot be opened")
		}
	} else {
		cfg, err := c.pgx()
		if err != nil {
			return nil, nil, err
		}
		db = stdlib.OpenDB(*cfg)
	}
	db.SetMaxOpenConns(2)
	db.SetConnMaxIdleTime(time.Minute)
	return db, d, nil
}

// pgx returns the settings of a connection to PostgreSQL.
func (c *Config) pgx() (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(c.URL)
	if err != nil {
		return nil, refuseURL("cannot be read")
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	cfg.DialFunc = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	if _, named := cfg.RuntimeParams["application_name"]; !named {
		cfg.RuntimeParams["application_name"] = "onbeat outbox"
	}
	return cfg, nil
}

// Redacted returns the URL without its password, and without parameters, among which there may be another.
func (c *Config) Redacted() string {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme == "" {
		return "…"
	}
	shown := u.Scheme + "://"
	if u.User != nil && u.Scheme != "sqlite" {
		shown += "…@"
	}
	return shown + u.Host + u.Path
}

// Migrate makes the table, if it is not there. Movers do so too, when they start; a program that adds tasks before an instance has
// run calls it, or has the statements of docs/outbox.md among its own migrations.
func Migrate(ctx context.Context, db *sql.DB) error {
	d := &postgres
	var version string
	if db.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version) == nil {
		d = &sqlite
	}
	return d.migrate(ctx, db)
}
