package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"golang.org/x/net/http/httpguts"
)

const (
	contentType     = "application/x-protobuf"
	defaultEndpoint = "http://localhost:4318"
	tracesPath      = "v1/traces"
	defaultTimeout  = 10 * time.Second
)

type settings struct {
	url     string
	header  http.Header
	gzip    bool
	timeout time.Duration
	tls     *tls.Config // nil for the default
}

// variables are those of the environment. For each there is one of traces alone, which comes first.
type variables func(string) string

func (env variables) get(name string) (value, variable string) {
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_TRACES_" + name, "OTEL_EXPORTER_OTLP_" + name} {
		if v := strings.TrimSpace(env(variable)); v != "" {
			return v, variable
		}
	}
	return "", ""
}

func read(env variables) (s settings, err error) {
	u, err := env.endpoint()
	if err != nil {
		return s, err
	}
	s.url = u.String()
	if s.tls, err = env.certificates(); err != nil {
		return s, err
	}
	if s.tls != nil && u.Scheme == "http" {
		return s, fmt.Errorf("%s has no TLS, but there are certificates for it", s.url)
	}
	v, _ := env.get("COMPRESSION")
	s.gzip = v == "gzip"
	if s.header, err = env.headers(); err != nil {
		return s, err
	}
	s.header.Set("Content-Type", contentType)
	if s.gzip {
		s.header.Set("Content-Encoding", "gzip")
	}
	s.timeout = defaultTimeout
	if v, name := env.get("TIMEOUT"); v != "" {
		ms, err := strconv.ParseUint(v, 10, 31)
		if err != nil {
			return s, fmt.Errorf("%s is no number of milliseconds: %q", name, v)
		}
		s.timeout = time.Duration(ms) * time.Millisecond
	}
	return s, nil
}

// endpoint is where requests go: the URL of traces as it is, or the URL of all signals with the path of traces.
func (env variables) endpoint() (*url.URL, error) {
	v, name := env.get("ENDPOINT")
	u, err := url.Parse(cmp.Or(v, defaultEndpoint))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" { // the URL may hold a password: the error has none of it
		return nil, fmt.Errorf("%s is no URL that begins with http:// or https://", name)
	}
	to := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path.Join("/", u.Path)}
	if name != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" {
		to.Path = path.Join("/", u.Path, tracesPath)
	} else if u.Path != "" {
		to.Path = u.Path
	}
	switch v, _ := env.get("INSECURE"); {
	case strings.EqualFold(v, "true"):
		to.Scheme = "http"
	case v != "":
		to.Scheme = "https"
	}
	return to, nil
}

func (env variables) headers() (http.Header, error) {
	h := http.Header{"User-Agent": {"OTel OTLP Exporter Go/" + otlptrace.Version()}}
	list, variable := env.get("HEADERS")
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, escaped, found := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(escaped))
		if !found || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("%s is no list of name=value with commas between them", variable)
		}
		h.Set(name, strings.TrimSpace(value))
	}
	return h, nil
}

func (env variables) certificates() (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if file, name := env.get("CERTIFICATE"); file != "" {
		pem, err := os.ReadFile(file)
		cfg.RootCAs = x509.NewCertPool()
		if err == nil && !cfg.RootCAs.AppendCertsFromPEM(pem) {
			err = errors.New("the file has no certificate")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	file, name := env.get("CLIENT_CERTIFICATE")
	if key, _ := env.get("CLIENT_KEY"); file != "" && key != "" {
		pair, err := tls.LoadX509KeyPair(file, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	if cfg.RootCAs == nil && cfg.Certificates == nil {
		return nil, nil
	}
	return cfg, nil
}
