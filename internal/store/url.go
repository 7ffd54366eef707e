package store

import (
	"crypto/tls"
	"maps"
	"net"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/rs/zerolog"

	"github.com/onbeat/onbeat/internal/secret"
	"github.com/onbeat/onbeat/internal/wording"
	"github.com/onbeat/onbeat/task"
)

const redisHint = "redis://, rediss://, redis-sentinel:// or redis-cluster://, such as " + secret.ExampleURL

// Dial returns a Redis client for a URL, tuned for a [Dispatcher]. It does not connect yet; close it when done.
//
//	redis://user:password@host:6379/0
//	redis-sentinel://user:password@host:26379,host:26379/master-name/0
//	redis-cluster://user:password@host:6379,host:6379
//
// With rediss:// (and rediss-sentinel://, rediss-cluster://) the connection is encrypted, and each server is verified by
// its own name: with the CAs of the system, or those in the PEM file that tls_ca names. A server that asks for a
// certificate is shown that of tls_cert and tls_key, which are read for each connection. skip_verify=true takes any
// server for Redis, and gives it the password.
//
// Dial asks all sentinels, and asks each server that they name for its role. So a sentinel that is behind does not leave
// the client without a primary.
//
// User and password are those of Redis; those of sentinels go into sentinel_username and sentinel_password. Other
// parameters are go-redis's own: pool_size, dial_timeout, read_timeout and so on.
//
// Dial refuses an invalid URL with a [*task.FieldError], which does not show the password.
func Dial(rawURL string) (redis.UniversalClient, error) { return Dialer{}.Dial(rawURL) }

// Dialer is [Dial] with a log. The zero value is Dial.
type Dialer struct {
	// Log receives a warning for sentinels that name a server which is not a primary. The zero Logger discards it.
	Log zerolog.Logger
}

// Dial is [Dial].
func (d Dialer) Dial(rawURL string) (redis.UniversalClient, error) {
	u, err := parseRedisURL(rawURL)
	if err == nil {
		u.conf, err = u.secure()
	}
	if err != nil {
		return nil, err
	}
	switch u.kind {
	case "sentinel":
		return u.sentinel(d.Log)
	case "cluster":
		return u.cluster()
	}
	return u.single()
}

// redisURL is a URL in parts. Unlike net/url it takes several hosts.
type redisURL struct {
	raw   string
	tls   bool
	kind  string // "", "sentinel" or "cluster"
	user  *url.Userinfo
	hosts []string // host:port
	path  []string
	query url.Values
	conf  *tls.Config // nil: without TLS
}

var redisScheme = regexp.MustCompile(`^rediss?(-sentinel|-cluster)?$`)

func parseRedisURL(raw string) (*redisURL, error) {
	u := &redisURL{raw: raw}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return nil, u.refuse("has no scheme")
	}
	base, kind, _ := strings.Cut(scheme, "-")
	if !redisScheme.MatchString(scheme) {
		return nil, u.refuse("unknown scheme")
	}
	u.tls, u.kind = base == "rediss", kind

	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	parsed, err := url.Parse("redis://" + authority[:strings.LastIndexByte(authority, '@')+1] + "host" + tail)
	if err != nil {
		return nil, u.refuse("cannot be parsed") // the text of err repeats the URL, and with it the password
	}
	u.user, u.query = parsed.User, parsed.Query()
	if err := u.checkTail(parsed); err != nil {
		return nil, err
	}
	u.path = strings.FieldsFunc(parsed.Path, func(r rune) bool { return r == '/' })
	hosts := strings.Split(authority[strings.LastIndexByte(authority, '@')+1:], ",")
	if len(hosts) > 1 && kind == "" {
		return nil, u.refuse("has more than one host")
	}
	for _, h := range hosts {
		addr, ok := hostPort(h, map[string]string{"sentinel": "26379"}[kind])
		if !ok {
			return nil, u.refuse("has an invalid host or port")
		}
		u.hosts = append(u.hosts, addr)
	}
	return u, nil
}

// mostConns is more connections than any process needs. go-redis panics if such a number is too large or negative.
const mostConns = 100_000

// checkTail refuses the part after the hosts if it may belong to a password, or would make go-redis panic.
func (u *redisURL) checkTail(parsed *url.URL) error {
	cut := strings.Contains(parsed.EscapedPath(), "@") || parsed.Fragment != ""
	for name := range u.query {
		cut = cut || strings.Contains(name, "@")
	}
	if cut {
		return u.refuse("has an @ or a # after its host: in a password write / as %2F, ? as %3F, # as %23 and @ as %40")
	}
	for _, name := range []string{"pool_size", "min_idle_conns", "max_idle_conns", "max_active_conns"} {
		text := u.query.Get(name)
		if n, err := strconv.Atoi(text); text != "" && (err != nil || n < 0 || n > mostConns) {
			return u.refuse(name + " is not a number from 0 to " + strconv.Itoa(mostConns))
		}
	}
	if n, err := strconv.Atoi(u.query.Get("db")); err == nil && n < 0 {
		return u.refuse("has a negative database number")
	}
	return nil
}

// hostPort returns an address with the default host and port filled in, and whether it is valid.
func hostPort(s, port string) (string, bool) {
	if port == "" {
		port = "6379"
	}
	host := s
	if h, p, err := net.SplitHostPort(s); err == nil {
		host = h
		if p != "" {
			port = p
		}
	} else if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		host = s[1 : len(s)-1]
	} else if strings.ContainsAny(s, ":[]") {
		return "", false
	}
	if host == "" {
		host = "127.0.0.1"
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return net.JoinHostPort(host, port), err == nil && n > 0
}

func (u *redisURL) refuse(reason string) error {
	return &task.FieldError{Field: "url", Value: secret.URL(u.raw), Reason: reason, Hint: redisHint}
}

// rebuilt returns a URL that go-redis understands, with one host and without user and password.
func (u *redisURL) rebuilt(path string, more url.Values) string {
	q := url.Values{}
	for k, v := range u.query {
		if !slices.Contains(own, k) {
			q[k] = v
		}
	}
	for k, v := range more {
		q[k] = append(slices.Clone(q[k]), v...)
	}
	scheme := "redis"
	if u.tls {
		scheme = "rediss"
	}
	return (&url.URL{Scheme: scheme, Host: u.hosts[0], Path: path, RawQuery: q.Encode()}).String()
}

// refused turns an error of go-redis about the URL into a refusal. Of the error it repeats only the name of a known parameter: the
// rest may be a part of a password.
func (u *redisURL) refused(err error) error {
	text := strings.TrimPrefix(err.Error(), "redis: ")
	for _, name := range secret.Harmless {
		if strings.HasPrefix(text, "invalid "+name+" ") {
			return u.refuse("has an invalid " + name)
		}
	}
	switch {
	case strings.HasPrefix(text, "invalid database number"):
		return u.refuse("has an invalid database number")
	case strings.HasPrefix(text, "invalid URL path"):
		return u.refuse("has a path that is not a database number")
	case !strings.HasPrefix(text, "unexpected option"):
		return u.refuse("cannot be parsed")
	}
	for _, name := range slices.Sorted(maps.Keys(u.query)) {
		if best := wording.Nearest(name, secret.Harmless); best != "" && best != name {
			return u.refuse("has an unknown parameter, did you mean " + best + "?")
		}
	}
	return u.refuse("has an unknown parameter: in a password write ? as %3F, & as %26 and @ as %40")
}

func (u *redisURL) credentials() (user, password string) {
	password, _ = u.user.Password()
	return u.user.Username(), password
}

func (u *redisURL) single() (redis.UniversalClient, error) {
	if len(u.path) > 1 {
		return nil, u.refuse("has a path that is not a database number")
	}
	o, err := redis.ParseURL(u.rebuilt(strings.Join(append([]string{""}, u.path...), "/"), nil))
	if err != nil {
		return nil, u.refused(err)
	}
	if o.DB < 0 {
		return nil, u.refuse("has a negative database number")
	}
	o.Username, o.Password = u.credentials()
	tune(&o.ClientName, &o.DialTimeout, &o.ContextTimeoutEnabled)
	o.DialerRetries, o.MaintNotificationsConfig, o.TLSConfig = dialTries, noMaintenance, u.conf
	o.Dialer = dialAlways(redis.NewDialer(o))
	return redis.NewClient(o), nil
}

func (u *redisURL) sentinel(log zerolog.Logger) (redis.UniversalClient, error) {
	name := u.query.Get("master_name")
	path := u.path
	if name == "" && len(path) > 0 {
		name, path = path[0], path[1:]
	}
	if name == "" {
		return nil, u.refuse("has no master name: write redis-sentinel://host:26379/master-name")
	}
	more := url.Values{"addr": u.hosts[1:]}
	u.query.Set("master_name", name)
	o, err := redis.ParseFailoverURL(u.rebuilt(strings.Join(append([]string{""}, path...), "/"), more))
	if err != nil {
		return nil, u.refused(err)
	}
	if o.DB < 0 {
		return nil, u.refuse("has a negative database number")
	}
	o.Username, o.Password = u.credentials()
	o.SentinelUsername, o.SentinelPassword = u.query.Get("sentinel_username"), u.query.Get("sentinel_password")
	tune(&o.ClientName, &o.DialTimeout, &o.ContextTimeoutEnabled)
	o.DialerRetries, o.TLSConfig = dialTries, u.conf
	if o.PoolSize == 0 {
		o.PoolSize = 10 * runtime.GOMAXPROCS(0) // the default of go-redis
	}
	o.MinIdleConns = min(o.MinIdleConns, o.PoolSize-1) // go-redis dials these before it has the hook: see dialAlways
	if o.ReplicaOnly {                                 // a caller that asks for a replica wants no primary
		rdb := redis.NewFailoverClient(o)
		rdb.AddHook(dialHook{})
		return rdb, nil
	}
	s := newSentinels(o, log)
	o.Dialer = s.dialPlain
	rdb := redis.NewFailoverClient(o)
	rdb.AddHook(s) // around the dialer that believes one sentinel
	s.ready.Store(true)
	return rdb, nil
}

func (u *redisURL) cluster() (redis.UniversalClient, error) {
	if len(u.path) > 1 || len(u.path) == 1 && u.path[0] != "0" {
		return nil, u.refuse("names a database, but a cluster has only database 0")
	}
	more := url.Values{"addr": u.hosts[1:]}
	o, err := redis.ParseClusterURL(u.rebuilt("", more))
	if err != nil {
		return nil, u.refused(err)
	}
	o.Username, o.Password = u.credentials()
	tune(&o.ClientName, &o.DialTimeout, &o.ContextTimeoutEnabled)
	o.DialerRetries, o.MaintNotificationsConfig, o.TLSConfig = dialTries, noMaintenance, u.conf
	o.Dialer = dialAlways(redis.NewDialer(&redis.Options{DialTimeout: o.DialTimeout, TLSConfig: o.TLSConfig}))
	o.DisableRoutingPolicies = true // with them, any first command waits until a random node has said COMMAND, also one that hangs
	return redis.NewClusterClient(o), nil
}

// dialTries is one: the caller that needs the connection tries again itself, and knows how long that makes sense.
const dialTries = 1

// Notices of planned maintenance are a feature of Redis Enterprise; asking for them costs others an error at each
// connection.
var noMaintenance = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

// tune sets what the URL did not.
func tune(name *string, dial *time.Duration, heedContext *bool) {
	if *name == "" {
		*name = "onbeat"
	}
	if *dial == 0 {
		*dial = 3 * time.Second
	}
	*heedContext = true
}
