package database

import (
	"net/url"
	"strings"
)

// hidden stands for what may be a secret.
const hidden = "…"

// unclear reports whether what follows the scheme may have a password that was not escaped.
func unclear(rest string) bool {
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	return strings.ContainsAny(tail, "@#") || strings.Count(authority, "@") > 1
}

// namesHosts reports whether what follows the scheme begins with hosts, each with or without a port.
func namesHosts(rest string) bool {
	hosts, _, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if i := strings.LastIndexByte(host, ']'); i >= 0 {
			host = host[i:] // an address of IPv6
		}
		if _, port, _ := strings.Cut(host, ":"); strings.Trim(port, "0123456789") != "" {
			return false
		}
	}
	return true
}

// Redacted returns the URL of a database, or a text that was meant as one, without its password and its parameters.
func Redacted(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case raw == "":
		return ""
	case strings.HasPrefix(raw, "sqlite:"):
		if i := strings.IndexAny(raw, "?#"); i >= 0 {
			return raw[:i+1] + hidden // some drivers take a key there
		}
		return raw
	case !ok || scheme != "postgres" && scheme != "postgresql":
		return hidden // the text may be a user and, behind the colon, a password that begins with two slashes
	case unclear(rest):
		return scheme + "://" + hidden
	}
	shown, query, asks := strings.Cut(rest, "?")
	if !strings.Contains(shown, "@") && !namesHosts(shown) {
		return scheme + "://" + hidden // a user and a password whose host is missing, perhaps
	}
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

// Hide returns a text without the password.
func (a *Address) Hide(text string) string {
	if a.Postgres == nil || a.Postgres.Password() == "" {
		return text
	}
	password := a.Postgres.Password()
	return strings.NewReplacer(password, hidden, url.QueryEscape(password), hidden, url.PathEscape(password), hidden).Replace(text)
}
