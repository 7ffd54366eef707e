package doctor

import (
	"net/url"
	"strings"
)

// sentinels are the sentinels of a redis-sentinel:// URL. Each has a URL, so that it can be asked like any Redis.
type sentinels struct {
	urls   []string
	master string
}

// sentinelsOf reads a URL that [store.Dial] takes. It returns nil if the URL names no sentinels.
func sentinelsOf(raw string) *sentinels {
	scheme, rest, _ := strings.Cut(raw, "://")
	base, kind, _ := strings.Cut(scheme, "-")
	if kind != "sentinel" {
		return nil
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	parsed, err := url.Parse("redis://host" + tail)
	if err != nil {
		return nil
	}
	q, own := parsed.Query(), url.Values{}
	s := &sentinels{master: q.Get("master_name")}
	if s.master == "" {
		s.master, _, _ = strings.Cut(strings.TrimPrefix(parsed.Path, "/"), "/")
	}
	for _, name := range []string{"tls_ca", "tls_cert", "tls_key", "skip_verify", "dial_timeout", "read_timeout"} {
		if v := q.Get(name); v != "" {
			own.Set(name, v)
		}
	}
	var user *url.Userinfo
	if name, password := q.Get("sentinel_username"), q.Get("sentinel_password"); name != "" || password != "" {
		user = url.UserPassword(name, password)
	}
	for host := range strings.SplitSeq(authority[strings.LastIndexByte(authority, '@')+1:], ",") {
		if i := strings.LastIndexByte(host, ':'); i < 0 || strings.HasSuffix(host, "]") {
			host += ":26379"
		}
		u := url.URL{Scheme: base, User: user, Host: host, RawQuery: own.Encode()}
		s.urls = append(s.urls, u.String())
	}
	return s
}
