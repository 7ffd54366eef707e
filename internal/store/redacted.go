package store

import (
	"regexp"
	"slices"
	"strings"
)

// hidden stands for what may be a secret.
const hidden = "…"

// Redacted returns a Redis URL, or a text that was meant as one, without its passwords. It shows only the parts that cannot
// be a password: the scheme, the hosts with their ports, the number of a database or the name of a master, and the values of
// options that are no secret. A password that was not escaped can make the parts unclear; then it shows the scheme alone.
func Redacted(rawURL string) string {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return redactedBare(rawURL)
	}
	if !slices.Contains(schemes, scheme) {
		return hidden // the text may be a user and, behind the colon, a password that begins with two slashes
	}
	i := strings.LastIndexByte(rest, '@')
	if i >= 0 && strings.ContainsAny(rest[:i], "/?#") {
		return scheme + "://" + hidden
	}
	shown := scheme + "://"
	if i >= 0 {
		shown += redactedUser(rest[:i]) + "@"
		rest = rest[i+1:]
	}
	rest, query, asks := strings.Cut(rest, "?")
	hosts, path, has := strings.Cut(rest, "/")
	if !areHosts(hosts) {
		return shown + hidden
	}
	shown += hosts
	if has {
		shown += "/" + redactedPath(path, strings.Contains(scheme, "sentinel"))
	}
	if asks {
		shown += "?" + redactedQuery(query)
	}
	return shown
}

var schemes = []string{"redis", "rediss", "redis-sentinel", "rediss-sentinel", "redis-cluster", "rediss-cluster"}

// redactedBare redacts a text that has no scheme. It shows an address, and hides a single word, which may be a password.
func redactedBare(text string) string {
	before, after, ok := strings.Cut(text, "@")
	switch {
	case ok && !strings.Contains(after, "@") && before != "" && areHosts(after):
		return hidden + "@" + after
	case !ok && strings.Contains(text, ":") && areHosts(text):
		return text
	}
	return hidden
}

// redactedUser shows a user's name only if a password follows. A name alone may be a password in the wrong place.
func redactedUser(info string) string {
	if user, _, ok := strings.Cut(info, ":"); ok {
		return user + ":" + hidden
	}
	return hidden
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]*$|^\[[0-9A-Fa-f:.]+\](:\d+)?$`)

func areHosts(list string) bool {
	for host := range strings.SplitSeq(list, ",") {
		name := host
		if _, ok := hostPort(host, ""); !ok {
			return false
		}
		if !strings.HasPrefix(host, "[") {
			name, _, _ = strings.Cut(host, ":")
		}
		if !hostName.MatchString(name) {
			return false
		}
	}
	return true
}

var (
	number = regexp.MustCompile(`^\d{0,9}$`)
	word   = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
)

func redactedPath(path string, named bool) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if !number.MatchString(part) && (!named || i > 0 || !word.MatchString(part)) {
			parts[i] = hidden
		}
	}
	return strings.Join(parts, "/")
}

// harmless are the options whose values are shown.
var harmless = []string{
	"addr", "client_name", "conn_max_idle_time", "conn_max_lifetime", "db", "dial_timeout", "master_name", "max_active_conns",
	"max_idle_conns", "max_redirects", "max_retries", "max_retry_backoff", "min_idle_conns", "min_retry_backoff", "pool_fifo",
	"pool_size", "pool_timeout", "protocol", "read_only", "read_timeout", "route_by_latency", "route_randomly", "skip_verify", "tls_ca",
	"tls_cert", "tls_key", "write_timeout",
}

func redactedQuery(query string) string {
	params := strings.Split(query, "&")
	for i, p := range params {
		name, _, ok := strings.Cut(p, "=")
		switch {
		case !ok || !slices.Contains(harmless, name) && !slices.Contains(own, name): // it may be the rest of a password
			params[i] = hidden
		case !slices.Contains(harmless, name):
			params[i] = name + "=" + hidden
		}
	}
	return strings.Join(params, "&")
}
