// Package database opens the SQL databases that a user names by a URL: PostgreSQL, or SQLite in a file. It links neither: the program
// imports the one that it uses.
package database

import (
	"context"
	"database/sql"
	"net/url"
	"slices"
	"strings"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/task"
)

// Postgres is a server of PostgreSQL.
type Postgres interface {
	// Default sets a parameter of each session, unless the URL does.
	Default(name, value string)
	// Password is that of the URL or of the environment.
	Password() string
	// Open returns the database, without connecting to it yet. Each connection begins with the statement, if there is one.
	Open(begin string) *sql.DB
	// Listen listens to a channel, on a connection of its own. It calls told when it begins and for each notification, and returns when
	// ctx ends, or when it hears nothing more.
	Listen(ctx context.Context, channel string, told func())
	// Unreachable reports whether an error is one of the connection.
	Unreachable(err error) bool
}

// parsePostgres is nil in a program that does not import package postgres.
var parsePostgres func(url string) (Postgres, error)

// RegisterPostgres sets the parser of URLs. Package postgres does so when the program begins.
func RegisterPostgres(parse func(url string) (Postgres, error)) { parsePostgres = parse }

// liteDriver is the name that modernc.org/sqlite has in database/sql.
const liteDriver = "sqlite"

// Address is a URL in parts: a server of PostgreSQL, or the path of a file.
type Address struct {
	Postgres Postgres // nil: SQLite
	File     string
}

// Parse takes a URL apart. It refuses one that it cannot use with a [*task.FieldError], which shows no password. The section is that
// of the config which has the URL, such as archive.
func Parse(section, raw string) (*Address, error) {
	refuse := func(reason string) error {
		return &task.FieldError{
			Field: section + ".url", Value: secret.URL(raw), Reason: reason,
			Hint: "postgres://user:password@host:5432/database, or sqlite:///var/lib/onbeat/" + section + ".db",
		}
	}
	unlinked := func(kind, driver string) error {
		return &task.FieldError{
			Field: section + ".url", Value: secret.URL(raw), Reason: "this program has no driver for " + kind, Hint: `import _ "` + driver + `"`,
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
		if parsePostgres == nil {
			return nil, unlinked("PostgreSQL", "github.com/onbeat/onbeat/postgres")
		}
		server, err := parsePostgres(raw)
		if err != nil {
			return nil, refuse("cannot be parsed") // the text of err may have a part of the password
		}
		server.Default("application_name", "onbeat "+section)
		return &Address{Postgres: server}, nil
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
	if !slices.Contains(sql.Drivers(), liteDriver) {
		return nil, unlinked("SQLite", "modernc.org/sqlite")
	}
	return &Address{File: path}, nil
}

// Open returns the database, without connecting to it yet. The pragmas are for each connection of SQLite; each of PostgreSQL begins with
// a statement, if there is one.
func (a *Address) Open(pragmas, begin string) (*sql.DB, error) {
	if a.Postgres != nil {
		return a.Postgres.Open(begin), nil
	}
	return sql.Open(liteDriver, "file:"+(&url.URL{Path: a.File}).EscapedPath()+"?"+pragmas)
}

// unclear reports whether the text behind the scheme may have a password that was not escaped.
func unclear(rest string) bool {
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	return strings.ContainsAny(tail, "@#") || strings.Count(authority, "@") > 1
}

// Hide returns a text without the password.
func (a *Address) Hide(text string) string {
	var s secret.Set
	if a.Postgres != nil {
		s.Add(a.Postgres.Password())
	}
	return s.Hide(text)
}
