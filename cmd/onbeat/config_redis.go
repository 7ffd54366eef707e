package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/onbeat/onbeat"
)

// checkRedis refuses a URL, and files for its TLS, that cannot be used.
func (c *config) checkRedis() error {
	if _, in := inFile(string(c.Redis.URL)); in || c.Redis.URL == "" {
		return nil // the file, a flag or the environment may say it
	}
	if strings.HasPrefix(string(c.Redis.URL), "redis:") || strings.HasPrefix(string(c.Redis.URL), "redis-") {
		for _, f := range c.tlsFiles() {
			if f.file != "" {
				return refuse("redis."+f.name, string(f.file), "without TLS", "begin redis.url with rediss")
			}
		}
	}
	rdb, err := onbeat.Dial(c.withTLS(string(c.Redis.URL)))
	if err == nil {
		_ = rdb.Close()
	}
	return err
}

// tlsFile is a file for TLS that the config names.
type tlsFile struct {
	name string // as a field, and as a parameter of a URL
	file text
}

func (c *config) tlsFiles() []tlsFile {
	return []tlsFile{{"tls_ca", c.Redis.TLSCA}, {"tls_cert", c.Redis.TLSCert}, {"tls_key", c.Redis.TLSKey}}
}

// path is a file that the config names: relative to its folder, so that it is the same wherever the program is started. A
// config that comes through a pipe has no folder of its own.
func (c *config) path(name string) string {
	if name == "" || filepath.IsAbs(name) {
		return name
	}
	if c.file != nil {
		if info, err := os.Stat(c.file.name); err == nil && info.Mode().IsRegular() {
			name = filepath.Join(filepath.Dir(c.file.name), name)
		}
	}
	if path, err := filepath.Abs(name); err == nil { // conformance starts instances in other folders
		return path
	}
	return name
}

// place makes the files that redis.url names those in the folder of the config.
func (c *config) place() {
	raw := string(c.Redis.URL)
	if f, in := inFile(raw); in {
		c.Redis.URL = text(filePrefix + c.path(string(f)))
		return
	}
	head, query, _ := strings.Cut(raw, "?")
	params := strings.Split(query, "&")
	for i, p := range params {
		name, value, _ := strings.Cut(p, "=")
		file, err := url.QueryUnescape(value)
		if err == nil && file != "" && (name == "tls_ca" || name == "tls_cert" || name == "tls_key") {
			params[i] = name + "=" + url.QueryEscape(c.path(file))
		}
	}
	if query != "" {
		c.Redis.URL = text(head + "?" + strings.Join(params, "&"))
	}
}

// withTLS adds the TLS files of the config to a URL. One that comes from elsewhere and names files of its own, or has no
// TLS, stays as it is.
func (c *config) withTLS(raw string) string {
	more := url.Values{}
	for _, f := range c.tlsFiles() {
		if f.file != "" {
			more.Set(f.name, c.path(string(f.file)))
		}
	}
	params := paramsOf(raw)
	if len(more) == 0 || params.Has("tls_ca") || params.Has("tls_cert") || params.Has("tls_key") {
		return raw
	}
	if !strings.HasPrefix(raw, "rediss") {
		return raw
	}
	if strings.Contains(raw, "?") {
		return raw + "&" + more.Encode()
	}
	return raw + "?" + more.Encode()
}

// paramsOf are the parameters of a Redis URL, which may name several hosts: net/url refuses those.
func paramsOf(raw string) url.Values {
	_, query, _ := strings.Cut(raw, "?")
	params, _ := url.ParseQuery(query) // what it cannot read, Dial refuses
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
	return paramsOf(raw).Get("sentinel_password") != ""
}

// caution is what works, and is not safe: serve logs it, doctor reports it.
type caution struct{ Check, Text, Hint string }

// cautions looks at how Redis is reached, and at who may read the secrets for that.
func (t target) cautions() []caution {
	var list []caution
	params := paramsOf(t.url)
	if on, _ := strconv.ParseBool(params.Get("skip_verify")); on {
		list = append(list, caution{"tls", "skip_verify: whoever stands in the way can pose as Redis, and gets the password",
			"remove it, and name the CA with tls_ca"})
	}
	for _, s := range []struct{ file, what, hint string }{
		{t.secretFile, "the password of Redis", "chmod 600, or write ${NAME} for the password"},
		{params.Get("tls_key"), "the key of tls_cert", "chmod 600"},
	} {
		if mode, open := openToOthers(s.file); open {
			list = append(list, caution{"secrets", fmt.Sprintf("%s has %s in it, and others can read it (mode %04o)", s.file, s.what, mode), s.hint})
		}
	}
	return list
}

// openToOthers reports whether the group or others may read a file.
func openToOthers(file string) (mode os.FileMode, open bool) {
	if file == "" || runtime.GOOS == "windows" { // there the mode says nothing of that
		return 0, false
	}
	info, err := os.Stat(file)
	if err != nil {
		return 0, false
	}
	mode = info.Mode().Perm()
	return mode, mode&0o044 != 0
}

// tlsHint says what to do about a server that cannot be spoken to by TLS, or that it does not want to.
func tlsHint(err error) (hint string, ok bool) {
	var (
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		alert   tls.AlertError
	)
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &unknown):
		return "name the CA that signed it with tls_ca", true
	case errors.As(err, &name):
		return "use a name in the URL that the certificate has", true
	case errors.As(err, &invalid):
		return "see the certificate of Redis, and the clock here", true
	case errors.As(err, &record):
		return "this port does not speak TLS: redis:// in place of rediss://", true
	case errors.As(err, &alert), strings.Contains(err.Error(), "remote error: tls:"):
		return "Redis refuses the connection: name a certificate that it knows with tls_cert and tls_key", true
	}
	return "", false
}
