package archive

import (
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/onbeat/onbeat/task"
)

const urlHint = "postgres://user:password@host:5432/database, or sqlite:///var/lib/onbeat/archive.db"

// hidden stands for what may be a secret.
const hidden = "…"

// address is a URL in parts: a configuration for PostgreSQL, or the path of a file.
type address struct {
	postgres *pgx.ConnConfig
	path     string
}

func parseURL(raw string) (*address, error) {
	refuse := func(reason string) error {
		return &task.FieldError{Field: "archive.url", Value: Redacted(raw), Reason: reason, Hint: urlHint}
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
		return &address{postgres: conf}, nil
	case strings.HasPrefix(raw, "sqlite::memory:"), scheme == "sqlite" && strings.HasPrefix(rest, ":memory:"):
		return nil, refuse("an archive in memory ends with its process")
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
	return &address{path: path}, nil
}

// unclear reports whether what follows the scheme may have a password that was not escaped.
func unclear(rest string) bool {
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	return strings.ContainsAny(tail, "@#") || strings.Count(authority, "@") > 1
}

// Redacted returns the URL of an archive, or a text that was meant as one, without its password.
func Redacted(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case raw == "":
		return ""
	case strings.HasPrefix(raw, "sqlite:"):
		return raw
	case !ok || scheme != "postgres" && scheme != "postgresql":
		return hidden // the text may be a user and, behind the colon, a password that begins with two slashes
	case unclear(rest):
		return scheme + "://" + hidden
	}
	shown, query, asks := strings.Cut(rest, "?")
	if login, host, ok := strings.Cut(shown, "@"); ok {
		user, _, secret := strings.Cut(login, ":")
		if secret {
			user += ":" + hidden
		}
		shown = user + "@" + host
	}
	if asks && query != "" {
		shown += "?" + hidden
	}
	return scheme + "://" + shown
}

// secrets are the parts of a PostgreSQL URL that must not be shown.
func (a *address) secrets() []string {
	if a.postgres == nil || a.postgres.Password == "" {
		return nil
	}
	return []string{a.postgres.Password, url.QueryEscape(a.postgres.Password), url.PathEscape(a.postgres.Password)}
}
