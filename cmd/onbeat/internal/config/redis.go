package config

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/onbeat/onbeat"
	"github.com/onbeat/onbeat/internal/field"
)

// Redis says how to reach Redis. Names of files are as they were written; see [File.WithTLS].
type Redis struct {
	// URL is one that [onbeat.Dial] takes, or file: and the name of a file that holds one; "" if the file says none.
	URL string
	// CA, Cert and Key are PEM files.
	CA, Cert, Key string
	// Secret says that the URL has a password that is written in the config file.
	Secret bool
}

// FilePrefix begins a redis.url that names a file with the URL in it.
const FilePrefix = "file:"

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// expand puts environment variables into the Redis URL, which may hold a password.
func (f *File) expand(getenv func(string) string) {
	f.Redis.Secret = hasPassword(variable.ReplaceAllString(f.Redis.URL, ""))
	f.Redis.URL = f.expanded("redis.url", f.Redis.URL, getenv)
}

// expanded is the URL of a field with environment variables put in.
func (f *File) expanded(field, raw string, getenv func(string) string) string {
	return variable.ReplaceAllStringFunc(raw, func(match string) string {
		name := match[2 : len(match)-1]
		value := getenv(name)
		if value == "" {
			f.unset = append(f.unset, f.doc.at("", refuse(field, match, "the environment variable is not set", "set "+name+", or write the URL out")))
			return match
		}
		return value
	})
}

// checkRedis refuses a URL, and files for its TLS, that cannot be used.
func (f *File) checkRedis() error {
	if f.Redis.URL == "" || strings.HasPrefix(f.Redis.URL, FilePrefix) || variable.MatchString(f.Redis.URL) {
		return nil // a file, a flag or the environment says it
	}
	if strings.HasPrefix(f.Redis.URL, "redis:") || strings.HasPrefix(f.Redis.URL, "redis-") {
		for _, file := range f.Redis.files() {
			if file.name != "" {
				return refuse("redis."+file.param, file.name, "redis.url does not use TLS", "begin redis.url with rediss")
			}
		}
	}
	rdb, err := Dial(onbeat.Dialer{}, f.WithTLS(f.Redis.URL))
	if err == nil {
		_ = rdb.Close()
	}
	return err
}

// Dial is that of a dialer. It refuses a URL by the name that the URL has in a config.
func Dial(d onbeat.Dialer, url string) (redis.UniversalClient, error) {
	rdb, err := d.Dial(url)
	return rdb, field.In("redis", err)
}

// tlsFile is a file for TLS, by its parameter in a URL, which is also its field.
type tlsFile struct{ param, name string }

func (r Redis) files() []tlsFile {
	return []tlsFile{{"tls_ca", r.CA}, {"tls_cert", r.Cert}, {"tls_key", r.Key}}
}

// CheckTLS refuses a URL without TLS, wherever it comes from, if the config names files for TLS: the connection would be
// readable on its way, and the operator would not know.
func (f *File) CheckTLS(raw string) error {
	if strings.HasPrefix(raw, "rediss") {
		return nil
	}
	for _, file := range f.Redis.files() {
		if file.name != "" {
			return f.At(refuse("redis."+file.param, file.name, "the URL of Redis does not use TLS", "begin the URL with rediss, also in a file or a variable that holds it"))
		}
	}
	return nil
}

// WithTLS adds the TLS files of the config to a Redis URL. A URL without TLS, or with files of its own, stays as it is.
func (f *File) WithTLS(raw string) string {
	more := url.Values{}
	for _, file := range f.Redis.files() {
		if file.name != "" {
			more.Set(file.param, f.path(file.name))
		}
	}
	params := ParamsOf(raw)
	if len(more) == 0 || params.Has("tls_ca") || params.Has("tls_cert") || params.Has("tls_key") || !strings.HasPrefix(raw, "rediss") {
		return raw
	}
	if strings.Contains(raw, "?") {
		return raw + "&" + more.Encode()
	}
	return raw + "?" + more.Encode()
}

// path is a file that the config names: relative to its folder, so that it is the same wherever the program is started. A
// config that comes through a pipe has no folder of its own.
func (f *File) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	if info, err := os.Stat(f.Name); err == nil && info.Mode().IsRegular() {
		name = filepath.Join(filepath.Dir(f.Name), name)
	}
	if path, err := filepath.Abs(name); err == nil { // conformance starts instances in other folders
		return path
	}
	return name
}

// place is a Redis URL in which relative names of files are those in the folder of the config.
func (f *File) place(raw string) string {
	if name, in := strings.CutPrefix(raw, FilePrefix); in {
		return FilePrefix + f.path(name)
	}
	head, query, _ := strings.Cut(raw, "?")
	if query == "" {
		return raw
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		name, value, _ := strings.Cut(p, "=")
		file, err := url.QueryUnescape(value)
		if err == nil && file != "" && (name == "tls_ca" || name == "tls_cert" || name == "tls_key") {
			params[i] = name + "=" + url.QueryEscape(f.path(file))
		}
	}
	return head + "?" + strings.Join(params, "&")
}

// ParamsOf are the parameters of a Redis URL. The URL may name several hosts, which net/url refuses.
func ParamsOf(raw string) url.Values {
	_, query, _ := strings.Cut(raw, "?")
	params, _ := url.ParseQuery(query) // onbeat.Dial refuses a query that cannot be read
	return params
}

// hasPassword reports whether a Redis URL has one in it, of Redis or of its sentinels.
func hasPassword(raw string) bool {
	_, rest, _ := strings.Cut(raw, "://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		if _, password, _ := strings.Cut(rest[:i], ":"); password != "" {
			return true
		}
	}
	return ParamsOf(raw).Get("sentinel_password") != ""
}
