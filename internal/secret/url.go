package secret

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// unsaid stands for what may be a secret.
const unsaid = "…"

var (
	schemes  = regexp.MustCompile(`^(rediss?(-sentinel|-cluster)?|postgres(ql)?)$`)
	hostPort = regexp.MustCompile(`^(?:[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(\d*))?$`)
	number   = regexp.MustCompile(`^\d{0,9}$`)
	word     = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)
)

// Harmless are the parameters of a Redis URL whose values are shown.
var Harmless = []string{
	"addr", "client_name", "conn_max_idle_time", "conn_max_lifetime", "db", "dial_timeout", "master_name", "max_active_conns",
	"max_idle_conns", "max_redirects", "max_retries", "max_retry_backoff", "min_idle_conns", "min_retry_backoff", "pool_fifo",
	"pool_size", "pool_timeout", "protocol", "read_only", "read_timeout", "route_by_latency", "route_randomly", "skip_verify", "tls_ca",
	"tls_cert", "tls_key", "write_timeout",
}

// logins are the parameters of a Redis URL whose names alone are shown.
var logins = []string{"sentinel_username", "sentinel_password"}

// URL returns the URL of Redis or of a database, or a text that was meant as one, without its passwords. It shows only the parts
// that cannot be a password: the scheme, the hosts with their ports, the name or the number of a database, the name of a master, the
// path of a file, and the values of parameters that are no secret. A password that was not escaped can make the parts unclear; then
// it shows the scheme alone.
func URL(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	switch {
	case (ok && scheme == "sqlite" || strings.HasPrefix(raw, "sqlite::memory:")) && !strings.Contains(raw, "@"):
		if i := strings.IndexAny(raw, "?#"); i >= 0 {
			return raw[:i+1] + unsaid // some drivers take a key there
		}
		return raw
	case !ok:
		return bareURL(raw)
	case !schemes.MatchString(scheme):
		return unsaid // the text may be a user and, behind the colon, a password that begins with two slashes
	}
	shown, postgres := scheme+"://", strings.HasPrefix(scheme, "postgres")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		if strings.ContainsAny(rest[:i], "/?#") {
			return shown + unsaid
		}
		user, _, has := strings.Cut(rest[:i], ":")
		switch {
		case has:
			user += ":" + unsaid
		case !postgres: // Redis has no user without a password, so the name may be a password in the wrong place
			user = unsaid
		}
		shown, rest = shown+user+"@", rest[i+1:]
	}
	rest, query, asks := strings.Cut(rest, "?")
	hosts, path, has := strings.Cut(rest, "/")
	if !areHosts(hosts) {
		return shown + unsaid
	}
	shown += hosts
	if has {
		shown += "/" + pathOf(path, postgres || strings.HasSuffix(scheme, "sentinel"))
	}
	if asks {
		shown += "?" + queryOf(query)
	}
	return shown
}

// bareURL is [URL] for a text without a scheme. It shows an address, and hides a single word, which may be a password.
func bareURL(text string) string {
	before, after, ok := strings.Cut(text, "@")
	switch {
	case text == "", !ok && strings.Contains(text, ":") && areHosts(text):
		return text
	case ok && before != "" && areHosts(after):
		return unsaid + "@" + after
	}
	return unsaid
}

func areHosts(list string) bool {
	for host := range strings.SplitSeq(list, ",") {
		match := hostPort.FindStringSubmatch(host)
		if match == nil {
			return false
		}
		if port, err := strconv.ParseUint(match[1], 10, 16); match[1] != "" && (err != nil || port == 0) {
			return false
		}
	}
	return true
}

// pathOf shows numbers, and the name of a master or a database where the path begins with one.
func pathOf(path string, named bool) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if !number.MatchString(part) && (!named || i > 0 || !word.MatchString(part)) {
			parts[i] = unsaid
		}
	}
	return strings.Join(parts, "/")
}

func queryOf(query string) string {
	params := strings.Split(query, "&")
	for i, p := range params {
		name, _, ok := strings.Cut(p, "=")
		switch {
		case ok && slices.Contains(logins, name):
			params[i] = name + "=" + unsaid
		case !ok || !slices.Contains(Harmless, name): // it may be the rest of a password
			params[i] = unsaid
		}
	}
	return strings.Join(params, "&")
}
