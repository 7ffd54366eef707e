// Package database opens the SQL databases that a user names by a URL: PostgreSQL, or SQLite in a file.
package database

import (
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

const (
	// connectTimeout is how long a server may take to answer at first, unless the URL says connect_timeout.
	connectTimeout = 10 * time.Second
	// keepAlive is how often a connection on which nothing happens is tried, so that a network that died is found.
	keepAlive = 15 * time.Second
)

// Address is a URL in parts: settings for PostgreSQL, or the path of a file.
type Address struct {
	Postgres *pgx.ConnConfig // nil: SQLite
	File     string
}

// Parse takes a URL apart. It refuses one that it cannot use with a [*task.FieldError], which shows no password. The section is that
// of the config which has the URL, such as archive.
func Parse(section, raw string) (*Address, error) {
	refuse := func(reason string) error {
		return &task.FieldError{
			Field: section + ".url", Value: Redacted(raw), Reason: reason,
			Hint: "postgres://user:password@host:5432/database, or sqlite:///var/lib/onbeat/" + section + ".db",
		}
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	switch {
	case raw == "":
		return nil, refuse("missing")
	case scheme == "postgres" || scheme == "postgresql":
		if unclear(rest) {
			return nil, refuse("has an @ or a # after its host: in a password write / as %2F, ? as %3F, # as %23 and @ as %40")
		}
		conf, err := pgx.ParseConfig(raw)
		if err != nil {
			return nil, refuse("cannot be parsed") // the text of err may have a part of the password
		}
		return &Address{Postgres: settled(conf, section)}, nil
	case strings.HasPrefix(raw, "sqlite::memory:"), scheme == "sqlite" && strings.HasPrefix(rest, ":memory:"):
		return nil, refuse("a database in memory ends with its process")
	case scheme != "sqlite":
		return nil, refuse("unknown scheme")
	case strings.ContainsAny(rest, "?#"):
		return nil, refuse("takes no parameters")
	case rest == "" || strings.HasSuffix(rest, "/"):
		return nil, refuse("names no file")
	}
	path, err := url.PathUnescape(rest)
	if err != nil || strings.ContainsRune(path, 0) {
		return nil, refuse("cannot be parsed")
	}
	return &Address{File: path}, nil
}

// settled completes what a URL of PostgreSQL leaves open.
func settled(conf *pgx.ConnConfig, section string) *pgx.ConnConfig {
	if conf.ConnectTimeout == 0 {
		conf.ConnectTimeout = connectTimeout
	}
	conf.DialFunc = (&net.Dialer{KeepAlive: keepAlive}).DialContext
	if _, named := conf.RuntimeParams["application_name"]; !named {
		conf.RuntimeParams["application_name"] = "onbeat " + section
	}
	return conf
}

// Open returns the database, without connecting to it yet. The pragmas are for each connection of SQLite, the options for PostgreSQL.
func (a *Address) Open(pragmas string, options ...stdlib.OptionOpenDB) (*sql.DB, error) {
	if a.Postgres != nil {
		return stdlib.OpenDB(*a.Postgres, options...), nil
	}
	return sql.Open("sqlite", "file:"+(&url.URL{Path: a.File}).EscapedPath()+"?"+pragmas)
}
